// Subscribes to every topic of ws://... with Foxglove's own client, decodes the messages with its decoders,
// and prints the first of each topic as JSON, a line each; then changes a parameter and prints the answer.
import {createRequire} from "node:module";

const [address, wanted] = process.argv.slice(2);
const require = createRequire(`${process.env.STEREOD_NODE_MODULES}/`);
const {FoxgloveClient} = require("@foxglove/ws-protocol");
const {parse} = require("@foxglove/rosmsg");
const {MessageReader} = require("@foxglove/rosmsg2-serialization");
const WebSocket = require("ws");

const socket = new WebSocket(address, ["foxglove.sdk.v1", FoxgloveClient.SUPPORTED_SUBPROTOCOL],
  {origin: "https://app.foxglove.dev"});
const client = new FoxgloveClient({ws: socket});
const topics = new Map(), seen = new Set();
const print = (value) => console.log(JSON.stringify(value, (_, value) =>
  typeof value === "bigint" ? Number(value) :
  value instanceof Uint8Array ? {base64: Buffer.from(value).toString("base64")} :
  ArrayBuffer.isView(value) ? [...value] : value));

client.on("error", (error) => { console.error(error); process.exit(1); });
client.on("serverInfo", (info) => print({serverInfo: info}));
client.on("status", (status) => print({status}));
client.on("advertise", (channels) => {
  for (const {id, topic, schema, schemaName} of channels) {
    topics.set(client.subscribe(id), {topic, schemaName, reader: new MessageReader(parse(schema, {ros2: true}))});
  }
});
client.on("message", ({subscriptionId, timestamp, data}) => {
  const {topic, schemaName, reader} = topics.get(subscriptionId);
  if (seen.has(topic)) return;
  seen.add(topic);
  print({topic, schemaName, timestamp, message: reader.readMessage(data)});
  if (seen.size === Number(wanted)) client.setParameters([{name: "matching.uniqueness", value: 17}], "test");
});
client.on("parameterValues", (values) => { print(values); client.close(); process.exit(0); });

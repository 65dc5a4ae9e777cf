//! Services of a graph: how they are offered and answered, and the messages of std_srvs.

use anyhow::Result;
use ros2_client::{
    Message, Name, Node, QosProfile, RmwRequestId, Server, ServiceMapping, ServiceTypeName,
};
use serde::{Deserialize, Serialize};

/// Request of `std_srvs/SetBool`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SetBool {
    pub(super) data: bool,
}

/// Request of `std_srvs/Trigger`. An empty message has a byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trigger {
    pub(super) structure_needs_at_least_one_member: u8,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Response {
    pub(super) success: bool,
    pub(super) message: String,
}

impl Response {
    pub(super) fn of(done: Result<String>) -> Self {
        match done {
            Ok(message) => Self { success: true, message },
            Err(error) => Self { success: false, message: format!("{error:#}") },
        }
    }
}

impl Message for SetBool {}
impl Message for Trigger {}
impl Message for Response {}

pub(super) fn serve<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    node: &mut Node,
    name: &Name,
    kind: ServiceTypeName,
) -> Result<Server<Q, A>> {
    let quality = QosProfile::publisher_default();
    Ok(node.create_server(ServiceMapping::Enhanced, name, &kind, quality.clone(), quality)?)
}

pub(super) fn receive<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    server: &Server<Q, A>,
) -> Option<(RmwRequestId, Q)> {
    let unreadable = |error| tracing::debug!("ROS 2: an unreadable request: {error}");
    server.receive_request().map_err(unreadable).ok().flatten()
}

pub(super) fn respond<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    server: &Server<Q, A>,
    id: RmwRequestId,
    response: A,
) {
    if let Err(error) = server.send_response(id, response) {
        tracing::debug!("ROS 2: an answer was lost: {error}");
    }
}

pub(super) fn answer<Q: Message + Clone + 'static, A: Message + Clone + 'static>(
    server: &Server<Q, A>,
    mut work: impl FnMut(Q) -> A,
) {
    while let Some((id, request)) = receive(server) {
        respond(server, id, work(request));
    }
}

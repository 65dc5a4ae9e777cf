//! Definitions of the messages, as ROS 2 has them (packages common_interfaces, geometry2, rcl_interfaces and
//! vision_msgs 4), without comments and constants.

/// Every type after `MSG: ` and its name, with its fields.
const DEFINITIONS: &str = include_str!("definitions.msg");

fn definitions() -> impl Iterator<Item = (&'static str, &'static str)> {
    DEFINITIONS.split("MSG: ").filter_map(|of_type| of_type.split_once('\n'))
}

/// Returns the name of a type as MCAP and Foxglove spell it: `sensor_msgs/msg/Image`.
pub fn full_name(name: &str) -> String {
    name.replacen('/', "/msg/", 1)
}

/// Returns the definition of a type in the format `ros2msg`: its own fields, then the types that it uses.
pub fn definition(name: &str) -> String {
    let mut used = vec![name];
    let mut text = String::new();
    let mut next = 0;
    while let Some(&name) = used.get(next) {
        let fields = definitions().find(|(known, _)| *known == name).map_or("", |(_, f)| f);
        if next > 0 {
            text += &format!("{}\nMSG: {name}\n", "=".repeat(80));
        }
        text += fields;
        for line in fields.lines() {
            let of = line.split([' ', '[']).next().unwrap_or_default();
            if of.contains('/') && !used.contains(&of) {
                used.push(of);
            }
        }
        next += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_holds_every_type_that_it_uses_once() {
        for (name, _) in definitions() {
            let text = definition(name);
            let has = |name: &str| text.matches(&format!("MSG: {name}\n")).count();
            for line in text.lines().filter(|line| !line.starts_with("MSG")) {
                let of = line.split([' ', '[']).next().unwrap();
                assert!(!of.contains('/') || has(of) == 1, "{name} uses {of}: {text}");
            }
        }
        assert!(definition("sensor_msgs/Image").starts_with("std_msgs/Header header\nuint32"));
        assert_eq!(full_name("sensor_msgs/Image"), "sensor_msgs/msg/Image");
    }
}

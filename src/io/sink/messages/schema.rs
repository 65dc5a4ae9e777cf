//! Definitions of the messages, as ROS 2 has them (packages common_interfaces, geometry2 and
//! rcl_interfaces), without comments and constants.

/// Name and fields of every type.
const DEFINITIONS: [(&str, &str); 17] = [
    (
        "sensor_msgs/Image",
        "\
std_msgs/Header header
uint32 height
uint32 width
string encoding
uint8 is_bigendian
uint32 step
uint8[] data
",
    ),
    (
        "sensor_msgs/CompressedImage",
        "\
std_msgs/Header header
string format
uint8[] data
",
    ),
    (
        "sensor_msgs/CameraInfo",
        "\
std_msgs/Header header
uint32 height
uint32 width
string distortion_model
float64[] d
float64[9] k
float64[9] r
float64[12] p
uint32 binning_x
uint32 binning_y
sensor_msgs/RegionOfInterest roi
",
    ),
    (
        "sensor_msgs/RegionOfInterest",
        "\
uint32 x_offset
uint32 y_offset
uint32 height
uint32 width
bool do_rectify
",
    ),
    (
        "sensor_msgs/PointCloud2",
        "\
std_msgs/Header header
uint32 height
uint32 width
sensor_msgs/PointField[] fields
bool is_bigendian
uint32 point_step
uint32 row_step
uint8[] data
bool is_dense
",
    ),
    (
        "sensor_msgs/PointField",
        "\
string name
uint32 offset
uint8 datatype
uint32 count
",
    ),
    (
        "stereo_msgs/DisparityImage",
        "\
std_msgs/Header header
sensor_msgs/Image image
float32 f
float32 t
sensor_msgs/RegionOfInterest valid_window
float32 min_disparity
float32 max_disparity
float32 delta_d
",
    ),
    ("tf2_msgs/TFMessage", "geometry_msgs/TransformStamped[] transforms\n"),
    (
        "geometry_msgs/TransformStamped",
        "\
std_msgs/Header header
string child_frame_id
geometry_msgs/Transform transform
",
    ),
    (
        "geometry_msgs/Transform",
        "\
geometry_msgs/Vector3 translation
geometry_msgs/Quaternion rotation
",
    ),
    ("geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z\n"),
    ("geometry_msgs/Quaternion", "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"),
    (
        "diagnostic_msgs/DiagnosticArray",
        "\
std_msgs/Header header
diagnostic_msgs/DiagnosticStatus[] status
",
    ),
    (
        "diagnostic_msgs/DiagnosticStatus",
        "\
byte level
string name
string message
string hardware_id
diagnostic_msgs/KeyValue[] values
",
    ),
    ("diagnostic_msgs/KeyValue", "string key\nstring value\n"),
    ("std_msgs/Header", "builtin_interfaces/Time stamp\nstring frame_id\n"),
    ("builtin_interfaces/Time", "int32 sec\nuint32 nanosec\n"),
];

/// Returns the name of a type as MCAP and Foxglove spell it: `sensor_msgs/msg/Image`.
pub fn full_name(name: &str) -> String {
    name.replacen('/', "/msg/", 1)
}

/// Returns the definition of a type in the format `ros2msg`: its own fields, then the types that it
/// uses.
pub fn definition(name: &str) -> String {
    let mut used = vec![name];
    let mut text = String::new();
    let mut next = 0;
    while let Some(&name) = used.get(next) {
        let fields = DEFINITIONS.iter().find(|(known, _)| *known == name).map_or("", |(_, f)| f);
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
        for (name, _) in DEFINITIONS {
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

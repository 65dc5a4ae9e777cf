//! GStreamer's libraries, loaded when they are first needed, so that the program starts without them.
//!
//! Its functions are defined here as jumps through a table. The linker finds these first and leaves the libraries out;
//! [`load`] fills the table. A function that is missing here is found in its library, which is then needed at the start
//! again: `nm --dynamic --undefined-only stereod` names it, and a test fails.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

#[cfg(unix)]
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
#[cfg(windows)]
use libloading::os::windows::Library;

/// On Linux, the first three bring the others.
const LIBRARIES: &str =
    "gio-2.0 gstvideo-1.0 gstapp-1.0 glib-2.0 gobject-2.0 gstreamer-1.0 gstbase-1.0";

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp qword ptr [rip + 2f]"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "adrp x16, 2f\n ldr x16, [x16, :lo12:2f]\n br x16"
    };
}

macro_rules! functions {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        std::arch::global_asm!(
            ".pushsection .data.late",
            ".balign 8",
            ".if {elf}\n .hidden stereod_late\n .endif",
            ".globl stereod_late",
            "stereod_late:",
            ".popsection",
            $(concat!(
                // No library that is loaded shall find these.
                ".if {elf}\n .hidden ", stringify!($name), "\n",
                ".type ", stringify!($name), ", @function\n .endif\n",
                ".globl ", stringify!($name), "\n",
                stringify!($name), ": ", jump!(), "\n",
                ".pushsection .data.late\n",
                "2: .quad {absent}\n",
                ".popsection",
            ),)*
            elf = const cfg!(unix) as u8,
            absent = sym absent,
        );
    };
}

unsafe extern "C" {
    #[link_name = "stereod_late"]
    static TABLE: [AtomicPtr<c_void>; NAMES.len()];
}

/// The only variable of the libraries that is used.
#[unsafe(no_mangle)]
static gst_memory_alignment: AtomicUsize = AtomicUsize::new(0);

extern "C" fn absent() -> ! {
    eprintln!("stereod: a function of GStreamer was called before GStreamer was loaded");
    std::process::abort()
}

/// Loads the libraries; fails with the reason if one is missing or too old.
pub fn load() -> Result<(), String> {
    let mut open = Vec::new();
    for name in LIBRARIES.split(' ') {
        // SAFETY: libraries of the system, whose initialisers have no conditions.
        #[cfg(unix)]
        let library =
            unsafe { Library::open(Some(format!("lib{name}.so.0")), RTLD_NOW | RTLD_GLOBAL) };
        // SAFETY: as above.
        #[cfg(windows)]
        let library = unsafe { Library::new(format!("{name}-0.dll")) };
        open.push(library.map_err(|error| format!("{:#}", anyhow::Error::new(error)))?);
    }
    let find = |name: &str| {
        // SAFETY: only the address is used here.
        let found = |library: &Library| unsafe { library.get::<*mut c_void>(name.as_bytes()) }.ok();
        let symbol = open.iter().find_map(|library| Some(found(library)?.as_raw_ptr()));
        symbol.ok_or_else(|| format!("the version that is here has no {name}"))
    };
    let found: Vec<_> = NAMES.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
    let alignment = find("gst_memory_alignment")?.cast::<usize>();
    // SAFETY: a variable of this type.
    gst_memory_alignment.store(unsafe { alignment.read() }, Ordering::Relaxed);
    // SAFETY: the assembler's table has one place for each name.
    let table = unsafe { &TABLE };
    for (place, function) in std::iter::zip(table, found) {
        place.store(function, Ordering::Relaxed);
    }
    // They stay until the process ends.
    std::mem::forget(open);
    Ok(())
}

functions! {
    _gst_debug_category_new g_async_initable_get_type g_atomic_int_get g_closure_add_finalize_notifier
    g_closure_new_simple g_closure_ref g_closure_set_meta_marshal g_closure_sink g_closure_unref
    g_date_time_unref g_enum_get_value_by_nick g_error_free
    g_error_new_literal g_filename_from_uri g_free g_initable_get_type g_initially_unowned_get_type
    g_list_copy_deep g_list_free_1 g_list_free_full g_log g_log_set_default_handler g_malloc g_mutex_lock
    g_mutex_unlock g_object_class_find_property g_object_class_list_properties g_object_get_property g_object_get_type
    g_object_is_floating g_object_new_with_properties g_object_newv g_object_ref g_object_ref_sink
    g_object_set_property g_object_unref g_param_spec_get_name g_param_spec_ref_sink g_param_spec_unref
    g_param_value_validate g_quark_to_string g_signal_connect_closure_by_id g_signal_connect_data g_signal_name
    g_signal_parse_name g_signal_query g_strdup g_strdup_value_contents g_string_append_len g_string_append_unichar
    g_strndup g_time_zone_new_utc g_time_zone_unref g_type_check_instance_is_a g_type_check_value_holds
    g_type_class_ref g_type_class_unref g_type_from_name g_type_is_a g_type_name g_type_register_static
    g_type_test_flags g_utf8_make_valid g_utf8_validate g_value_copy g_value_dup_object g_value_get_boxed
    g_value_get_int g_value_get_object g_value_get_string g_value_get_uint g_value_init g_value_set_boolean
    g_value_set_boxed g_value_set_enum g_value_set_int g_value_set_uint g_value_set_uint64 g_value_take_boxed
    g_value_take_string g_value_unset g_weak_ref_clear g_weak_ref_get g_weak_ref_init gst_allocator_get_type
    gst_app_sink_get_type gst_app_sink_pull_sample gst_app_sink_set_callbacks gst_app_src_end_of_stream
    gst_app_src_get_type gst_app_src_push_buffer gst_app_src_push_sample gst_app_src_set_callbacks
    gst_base_sink_set_drop_out_of_segment gst_base_src_get_buffer_pool gst_base_src_get_type
    gst_base_src_set_automatic_eos gst_bin_add gst_bin_get_by_name gst_bin_get_type gst_bin_iterate_recurse
    gst_bin_iterate_sinks gst_bin_iterate_sources gst_buffer_add_video_meta_full gst_buffer_append_memory
    gst_buffer_get_meta gst_buffer_get_size gst_buffer_get_type gst_buffer_iterate_meta gst_buffer_list_get
    gst_buffer_list_get_type gst_buffer_list_length gst_buffer_map gst_buffer_new gst_buffer_pool_get_config
    gst_buffer_pool_get_type gst_buffer_pool_is_active gst_buffer_pool_set_config gst_buffer_unmap gst_bus_get_type
    gst_bus_set_sync_handler gst_bus_timed_pop gst_caps_append_structure gst_caps_append_structure_full
    gst_caps_features_free gst_caps_features_to_string gst_caps_get_features gst_caps_get_size gst_caps_get_structure
    gst_caps_get_type gst_caps_is_any gst_caps_is_empty gst_caps_new_empty gst_caps_set_value gst_caps_to_string
    gst_clock_get_time gst_clock_get_type gst_debug_add_log_function gst_debug_log_literal gst_debug_message_get
    gst_debug_remove_log_function gst_debug_set_active gst_debug_set_threshold_for_name gst_device_create_element
    gst_device_get_display_name gst_device_monitor_add_filter gst_device_monitor_get_devices
    gst_device_monitor_get_type gst_device_monitor_new gst_device_monitor_start gst_device_monitor_stop
    gst_element_add_pad gst_element_class_get_pad_template_list gst_element_factory_can_sink_any_caps
    gst_element_factory_find gst_element_factory_get_element_type gst_element_factory_get_metadata
    gst_element_factory_get_type gst_element_factory_list_get_elements gst_element_get_base_time gst_element_get_bus
    gst_element_get_factory gst_element_get_state gst_element_get_static_pad gst_element_get_type gst_element_link
    gst_element_message_full gst_element_post_message gst_element_query gst_element_query_duration
    gst_element_seek_simple gst_element_send_event gst_element_set_base_time gst_element_set_start_time
    gst_element_set_state gst_element_sync_state_with_parent gst_event_get_seqnum gst_event_get_structure
    gst_event_get_type gst_event_new_tag gst_event_parse_caps gst_event_parse_segment gst_event_parse_tag
    gst_event_set_running_time_offset gst_event_set_seqnum gst_event_type_get_name gst_event_writable_structure
    gst_format_get_type gst_fraction_get_type gst_fraction_range_get_type gst_ghost_pad_construct
    gst_ghost_pad_get_type gst_ghost_pad_set_target gst_init_check gst_int_range_get_type gst_is_initialized
    gst_iterator_find_custom gst_iterator_free gst_iterator_next gst_iterator_resync gst_library_error_quark
    gst_memory_init gst_message_get_structure gst_message_new_error_with_details gst_message_parse_error
    gst_message_parse_error_details gst_message_parse_warning gst_message_set_seqnum gst_message_writable_structure
    gst_mini_object_copy gst_mini_object_is_writable gst_mini_object_make_writable gst_mini_object_ref
    gst_mini_object_unref gst_object_get_name gst_object_get_type gst_pad_add_probe gst_pad_direction_get_type
    gst_pad_get_current_caps gst_pad_get_direction gst_pad_get_pad_template gst_pad_get_parent_element
    gst_pad_get_sticky_event gst_pad_get_task_state gst_pad_get_type gst_pad_is_linked gst_pad_link
    gst_pad_link_maybe_ghosting gst_pad_query_caps gst_pad_template_get_type gst_parse_bin_from_description_full
    gst_parse_error_quark gst_parse_launch gst_pipeline_get_type gst_pipeline_new gst_pipeline_use_clock
    gst_plugin_feature_get_plugin_name gst_plugin_feature_get_type gst_plugin_feature_load gst_query_get_structure
    gst_query_get_type gst_query_new_latency gst_query_parse_latency gst_query_type_get_name
    gst_reference_timestamp_meta_api_get_type gst_resource_error_quark gst_sample_get_buffer gst_sample_get_caps
    gst_sample_get_segment gst_sample_new gst_sample_set_buffer_list gst_segment_to_running_time
    gst_segment_to_stream_time gst_stream_error_quark gst_structure_copy gst_structure_free gst_structure_get_name
    gst_structure_get_type gst_structure_get_value gst_structure_n_fields gst_structure_new_empty
    gst_structure_nth_field_name gst_structure_take_value gst_system_clock_obtain gst_tag_get_type
    gst_tag_list_add_value gst_tag_list_copy_value gst_tag_list_new_empty gst_tag_list_set_scope
    gst_tag_setter_add_tag_value gst_tag_setter_get_type gst_type_find_peek gst_type_find_register
    gst_type_find_suggest gst_uri_handler_get_type gst_uri_handler_get_uri gst_uri_handler_get_uri_type
    gst_value_array_get_type gst_value_deserialize_with_pspec gst_value_list_append_and_take_value
    gst_value_list_get_type gst_value_serialize gst_value_set_fraction gst_value_set_fraction_range_full
    gst_value_set_int_range_step gst_version gst_version_string gst_video_color_matrix_get_Kr_Kb
    gst_video_crop_meta_api_get_type gst_video_format_get_info gst_video_format_info_component
    gst_video_format_to_string gst_video_formats_raw gst_video_frame_map gst_video_frame_unmap
    gst_video_info_from_caps gst_video_info_set_format gst_video_info_set_interlaced_format gst_video_info_to_caps
    gst_video_meta_api_get_type gst_video_time_code_add_frames gst_video_time_code_frames_since_daily_jam
    gst_video_time_code_init gst_video_time_code_is_valid
}

//! Drawing programs and the resources that they take.

pub(super) const SHADERS: [(&str, &str); 4] = [
    ("pane.wgsl", include_str!("../../../shaders/pane.wgsl")),
    ("picture.wgsl", include_str!("../../../shaders/picture.wgsl")),
    ("disparity.wgsl", include_str!("../../../shaders/disparity.wgsl")),
    ("points.wgsl", include_str!("../../../shaders/points.wgsl")),
];

/// Format of the distances by which points in space hide each other.
pub(super) const DEPTHS: wgpu::TextureFormat = wgpu::TextureFormat::Depth32Float;

const UNIFORM: wgpu::BindingType = wgpu::BindingType::Buffer {
    ty: wgpu::BufferBindingType::Uniform,
    has_dynamic_offset: false,
    min_binding_size: None,
};

pub(super) struct Layouts {
    pub picture: wgpu::BindGroupLayout,
    pub disparity: wgpu::BindGroupLayout,
    pub points: wgpu::BindGroupLayout,
    pub part: wgpu::BindGroupLayout,
}

pub(crate) struct Pipelines {
    pub(super) picture: wgpu::RenderPipeline,
    pub(super) disparity: wgpu::RenderPipeline,
    /// Points in space in the colours of the left image, and in those of their disparities.
    pub(super) points: [wgpu::RenderPipeline; 2],
    /// Lines in space.
    pub(super) lines: wgpu::RenderPipeline,
}

impl Layouts {
    pub fn new(device: &wgpu::Device) -> Self {
        let picture = layout(
            device,
            wgpu::ShaderStages::FRAGMENT,
            &[
                texture_binding(wgpu::TextureSampleType::Float { filterable: true }),
                texture_binding(wgpu::TextureSampleType::Float { filterable: true }),
                wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering),
                UNIFORM,
            ],
        );
        let disparity = layout(
            device,
            wgpu::ShaderStages::FRAGMENT,
            &[
                texture_binding(wgpu::TextureSampleType::Sint),
                texture_binding(wgpu::TextureSampleType::Float { filterable: false }),
                UNIFORM,
            ],
        );
        let points = layout(
            device,
            wgpu::ShaderStages::VERTEX,
            &[texture_binding(wgpu::TextureSampleType::Sint), UNIFORM],
        );
        let part = layout(device, wgpu::ShaderStages::VERTEX, &[UNIFORM]);
        Self { picture, disparity, points, part }
    }

    /// Creates the pipelines for targets of this format. Colours arrive byte by byte, even if the
    /// format encodes as sRGB.
    pub fn pipelines(&self, device: &wgpu::Device, format: wgpu::TextureFormat) -> Pipelines {
        let [pane, picture, disparity, points] = SHADERS.map(|(name, source)| {
            device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(name),
                source: wgpu::ShaderSource::Wgsl(source.into()),
            })
        });
        let hidden = wgpu::DepthStencilState {
            format: DEPTHS,
            depth_write_enabled: Some(true),
            depth_compare: Some(wgpu::CompareFunction::Less),
            stencil: Default::default(),
            bias: Default::default(),
        };
        let [of_picture, of_disparity, of_points, of_part] =
            [&self.picture, &self.disparity, &self.points, &self.part].map(Some);
        let triangles = wgpu::PrimitiveTopology::TriangleList;
        let make = |vertex, fragment, first, second, topology, depth_stencil| {
            pipeline((device, format), vertex, fragment, &[first, second], topology, depth_stencil)
        };
        let flat =
            |fragment, layout| make((&pane, "cover"), fragment, layout, of_part, triangles, None);
        let in_space = |vertex, fragment, layout, topology| {
            make((&points, vertex), fragment, layout, of_points, topology, Some(hidden.clone()))
        };
        let (shown, coloured) = ((&picture, "shown"), (&disparity, "coloured"));
        let (corner, lines) = ("corner_of_point", wgpu::PrimitiveTopology::LineList);
        Pipelines {
            picture: flat(shown, of_picture),
            disparity: flat(coloured, of_disparity),
            points: [(shown, of_picture), (coloured, of_disparity)]
                .map(|(fragment, layout)| in_space(corner, fragment, layout, triangles)),
            lines: in_space("end_of_line", (&picture, "line"), of_picture, lines),
        }
    }
}

/// Creates a drawing program from its vertex and fragment shaders, each with its function.
fn pipeline(
    (device, format): (&wgpu::Device, wgpu::TextureFormat),
    (vertex, of_vertex): (&wgpu::ShaderModule, &str),
    (fragment, of_fragment): (&wgpu::ShaderModule, &str),
    layouts: &[Option<&wgpu::BindGroupLayout>],
    topology: wgpu::PrimitiveTopology,
    depth_stencil: Option<wgpu::DepthStencilState>,
) -> wgpu::RenderPipeline {
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(of_fragment),
        bind_group_layouts: layouts,
        immediate_size: 0,
    });
    let constants = [("encoding_target", f64::from(u8::from(format.is_srgb())))];
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some(of_fragment),
        layout: Some(&layout),
        vertex: wgpu::VertexState {
            module: vertex,
            entry_point: Some(of_vertex),
            compilation_options: Default::default(),
            buffers: &[],
        },
        primitive: wgpu::PrimitiveState { topology, ..Default::default() },
        depth_stencil,
        multisample: Default::default(),
        fragment: Some(wgpu::FragmentState {
            module: fragment,
            entry_point: Some(of_fragment),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                ..Default::default()
            },
            targets: &[Some(format.into())],
        }),
        multiview_mask: None,
        cache: None,
    })
}

fn texture_binding(sample_type: wgpu::TextureSampleType) -> wgpu::BindingType {
    wgpu::BindingType::Texture {
        sample_type,
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    }
}

fn layout(
    device: &wgpu::Device,
    visibility: wgpu::ShaderStages,
    bindings: &[wgpu::BindingType],
) -> wgpu::BindGroupLayout {
    let entries: Vec<_> = (0..)
        .zip(bindings)
        .map(|(binding, &ty)| wgpu::BindGroupLayoutEntry { binding, visibility, ty, count: None })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    })
}

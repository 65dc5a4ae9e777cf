// shaders/points.wgsl in GLSL. STEREOD_WRITE_DOCS=1 and the unit test
// `the_page_draws_in_space_by_the_same_shaders` write this file.
export const LINES = 53;

const SAME = `#version 300 es
precision highp float;
precision highp int;
struct Space{
mat4x4 matrix;
vec2 centre;
vec2 spread;
float focal;
float scale;
float offset;
float step_;
float near;
float far;
float ground;
float square;
float swell;
vec3 unused;
};
struct Corner{
vec4 position;
vec2 place;
};
struct End{
vec4 position;
vec3 colour;
};
const int INVALID=-32768;
const uint AXES=3u;
const uint CAMERA=8u;
const uint SQUARES=20u;
uniform highp isampler2D _0_vs;
layout(std140) uniform Space_block_0Vertex{ Space _1_vs; };
`;

export const CORNER_OF_POINT = SAME + `smooth out vec2 _at;
vec3 point_at(vec2 pixel,float depth){
vec2 _e4=_1_vs.centre;
float _e9=_1_vs.focal;
return vec3((((pixel - _e4)*depth)/vec2(_e9)),depth);
}
float depth_of(ivec2 pixel_1){
bool local=false;
bool local_1=false;
ivec4 _e10=texelFetch(_0_vs,min(pixel_1,(ivec2(uvec2(textureSize(_0_vs,0).xy)) - ivec2(1))),0);
int value=_e10.x;
float _e17=_1_vs.offset;
float parallax=((float(value)/16.0) - _e17);
if (!((value == INVALID))){
local=(parallax <= 0.0);
} else{
local=true;
}
bool _e27=local;
if (_e27){
return 0.0;
}
float _e31=_1_vs.scale;
float depth_2=(_e31/parallax);
float _e35=_1_vs.near;
if (!((depth_2 < _e35))){
float _e42=_1_vs.far;
local_1=(depth_2 > _e42);
} else{
local_1=true;
}
bool _e45=local_1;
return (_e45 ? 0.0 : depth_2);
}
float step_to(ivec2 pixel_2,float depth_1){
float _e2=depth_of(pixel_2);
float step_=abs((_e2 - depth_1));
return ((step_ < (0.1*depth_1)) ? step_ : 0.0);
}
vec3 corner_of_image(uint which){
float _e6=_1_vs.step_;
vec2 size=(vec2(uvec2(textureSize(_0_vs,0).xy))*_e6);
vec2 corner=((vec2(uvec2((which & 1u),(which >> 1u)))*size) - vec2(0.5));
float _e20=_1_vs.square;
vec3 _e23=point_at(corner,(0.5*_e20));
return _e23;
}
void main(){
uint index=uint(gl_VertexID);
Corner point=Corner(vec4(0.0),vec2(0.0));
float side=0.0;
uvec2 size_1=uvec2(textureSize(_0_vs,0).xy);
uvec2 pixel_3=uvec2(((index/6u) % size_1.x),((index/6u)/size_1.x));
uint which_1=((3219984u >> ((index % 6u)*4u)) & 3u);
vec2 corner_1=vec2(uvec2((which_1 & 1u),(which_1 >> 1u)));
point.position=vec4(0.0,0.0,-1.0,1.0);
point.place=((vec2(pixel_3)+corner_1)/vec2(size_1));
ivec2 at_1=ivec2(pixel_3);
float _e39=depth_of(at_1);
if ((_e39 == 0.0)){
Corner _e42=point;
gl_Position=_e42.position;
_at=_e42.place;
return;
}
float _e45=_1_vs.swell;
float _e48=_1_vs.step_;
float _e53=_1_vs.focal;
side=(((_e45*_e48)*_e39)/_e53);
float _e58=_1_vs.swell;
if ((_e58 > 1.0)){
float _e65=step_to((at_1+ivec2(1,0)),_e39);
float _e70=step_to((at_1+ivec2(0,1)),_e39);
float steps=max(_e65,_e70);
float _e72=side;
float _e73=side;
side=max(_e72,min(steps,(2.0*_e73)));
}
mat4x4 _e81=_1_vs.matrix;
float _e85=_1_vs.step_;
vec3 _e87=point_at((vec2(pixel_3)*_e85),_e39);
point.position=(_e81*vec4(_e87,1.0));
vec4 _e92=point.position;
float _e96=side;
vec2 _e100=_1_vs.spread;
point.position=(_e92+vec4((((corner_1 - vec2(0.5))*_e96)*_e100),0.0,0.0));
Corner _e106=point;
gl_Position=_e106.position;
_at=_e106.place;
return;
}`;

export const END_OF_LINE = SAME + `smooth out vec3 _at;
vec3 point_at(vec2 pixel,float depth){
vec2 _e4=_1_vs.centre;
float _e9=_1_vs.focal;
return vec3((((pixel - _e4)*depth)/vec2(_e9)),depth);
}
vec3 corner_of_image(uint which){
float _e6=_1_vs.step_;
vec2 size=(vec2(uvec2(textureSize(_0_vs,0).xy))*_e6);
vec2 corner=((vec2(uvec2((which & 1u),(which >> 1u)))*size) - vec2(0.5));
float _e20=_1_vs.square;
vec3 _e23=point_at(corner,(0.5*_e20));
return _e23;
}
void main(){
uint index_1=uint(gl_VertexID);
uint line=0u;
vec3 at=vec3(0.0);
End end=End(vec4(0.0),vec3(0.0));
line=(index_1/2u);
bool is_end=((index_1 & 1u) == 1u);
uint _e12=line;
if ((_e12 < AXES)){
uint _e15=line;
uint _e19=line;
uint _e23=line;
vec3 axis=vec3(float((_e15 == 0u)),float((_e19 == 1u)),float((_e23 == 2u)));
float _e30=_1_vs.square;
at=(axis*(is_end ? _e30 : 0.0));
end.colour=(vec3(0.25,0.4,0.45)+(0.55*axis));
} else{
uint _e42=line;
if ((_e42 < 11u)){
uint _e45=line;
line=(_e45 - AXES);
uint _e48=line;
if ((_e48 < 4u)){
if (is_end){
uint _e51=line;
vec3 _e52=corner_of_image(_e51);
at=_e52;
}
} else{
uint _e53=line;
uint number=(((_e53 - 4u)+uint(is_end)) % 4u);
vec3 _e63=corner_of_image((number ^ (number >> 1u)));
at=_e63;
}
end.colour=vec3(0.9,0.65,0.1);
} else{
uint _e69=line;
line=(_e69 - 11u);
uint _e72=line;
bool is_along=(_e72 > SQUARES);
uint _e75=line;
float number_1=float((_e75 % 21u));
float reach=(is_end ? 20.0 : 0.0);
at=(is_along ? vec3((number_1 - 10.0),0.0,reach) : vec3((reach - 10.0),0.0,number_1));
vec3 _e90=at;
float _e93=_1_vs.square;
float _e97=_1_vs.ground;
at=((_e90*_e93)+vec3(0.0,_e97,0.0));
end.colour=vec3(0.42);
}
}
mat4x4 _e108=_1_vs.matrix;
vec3 _e109=at;
end.position=(_e108*vec4(_e109,1.0));
End _e113=end;
gl_Position=_e113.position;
_at=_e113.colour;
return;
}`;

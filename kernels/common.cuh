// What every kernel knows: the types of pictures and maps.
#pragma once

using u8 = unsigned char;
using u32 = unsigned int;
using i16 = short;

// Disparity in sixteenths of a pixel where it is unknown.
constexpr i16 INVALID = -32768;

// A C function around the kernel of `cuframe`, whose source is fetched and compiled with this file.
#include <stdexcept>
#include "roi_crop.cu"

namespace cuframe {
void throw_cuda_error(cudaError_t error, const char*, int) { throw std::runtime_error(cudaGetErrorString(error)); }
}

// Boxes as x, y, width and height on the host; the matrix has a row for each of red, green and blue.
extern "C" bool cuframe_crop(const void* nv12, int width, int height, const int* boxes, int count, float* out,
                             int out_width, int out_height, const float* matrix, const float* gain, const float* bias,
                             void* stream) {
    cuframe::ColorMatrix colours{};
    float3* rows[] = {&colours.r, &colours.g, &colours.b};
    cuframe::NormParams affine{};
    for (int row = 0; row < 3; ++row) {
        *rows[row] = make_float3(matrix[3 * row], matrix[3 * row + 1], matrix[3 * row + 2]);
        affine.scale[row] = gain[row];
        affine.bias[row] = bias[row];
    }
    try {
        cuframe::roi_crop_batch(static_cast<const uint8_t*>(nv12), width, height, width,
                                reinterpret_cast<const cuframe::Rect*>(boxes), count, out, out_width, out_height,
                                colours, affine, false, false, static_cast<cudaStream_t>(stream));
    } catch (const std::runtime_error& error) {
        fprintf(stderr, "cuframe: %s\n", error.what());
        return false;
    }
    return true;
}

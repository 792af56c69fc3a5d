// A C function around the kernel of `cuframe`, whose source is fetched and compiled with this file.
#include <stdexcept>
#include <cuda_runtime.h>

// Its kernel is timed apart from the allocation and the copy of its boxes: with boxes that are on the device already,
// these are left out.
namespace {
void* prepared = nullptr;

template <typename Boxes> cudaError_t allocate(Boxes** boxes, size_t bytes, cudaStream_t stream) {
    *boxes = static_cast<Boxes*>(prepared);
    return prepared ? cudaSuccess : cudaMallocAsync(reinterpret_cast<void**>(boxes), bytes, stream);
}

cudaError_t bring(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return prepared ? cudaSuccess : cudaMemcpyAsync(to, from, bytes, kind, stream);
}

cudaError_t release(void* boxes, cudaStream_t stream) { return prepared ? cudaSuccess : cudaFreeAsync(boxes, stream); }
}
#define cudaMallocAsync allocate
#define cudaMemcpyAsync bring
#define cudaFreeAsync release
#include "roi_crop.cu"

namespace cuframe {
void throw_cuda_error(cudaError_t error, const char*, int) { throw std::runtime_error(cudaGetErrorString(error)); }
}

// Boxes as x, y, width and height on the host, and null or where they are on the device; the matrix has a row for each of
// red, green and blue.
extern "C" bool cuframe_crop(const void* nv12, int width, int height, const int* boxes, void* on_device, int count,
                             float* out, int out_width, int out_height, const float* matrix, const float* gain,
                             const float* bias, void* stream) {
    prepared = on_device;
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

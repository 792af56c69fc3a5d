// C functions around NVIDIA's `roiconvert`, whose source is fetched and compiled with this file.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#define private public  // its kernel is timed apart from its copies
#include "roi_conversion.cu"
#undef private

using roiconv::ROIConversionImpl;

extern "C" {

void* roiconvert_new() { return new ROIConversionImpl(); }

// Describe a task for each box, split the tasks over blocks, and queue both tables' way to the device. The frame is NV12
// if there is chroma, whose pitch is that of the luma, else RGB.
bool roiconvert_prepare(void* self, const int* boxes, int count, const void* frame, const void* chroma, int width,
                        int height, float* out, int out_width, int out_height, const float* gain, const float* bias,
                        void* stream) {
    auto converter = static_cast<ROIConversionImpl*>(self);
    for (int index = 0; index < count; ++index) {
        roiconv::Task task{};
        task.x0 = boxes[4 * index];
        task.y0 = boxes[4 * index + 1];
        task.x1 = boxes[4 * index + 2];
        task.y1 = boxes[4 * index + 3];
        task.input_planes[0] = frame;
        task.input_planes[1] = chroma;
        task.input_width = width;
        task.input_height = height;
        task.input_stride = chroma ? width : 3 * width;
        task.output = out + size_t(index) * 3 * out_width * out_height;
        task.output_width = out_width;
        task.output_height = out_height;
        std::copy_n(gain, 3, task.alpha);
        std::copy_n(bias, 3, task.beta);
        task.resize_affine();
        converter->add(task);
    }
    return converter->data_preparation(stream, true);
}

// Queue the launch for what was prepared last.
bool roiconvert_launch(void* self, bool nv12, void* stream) {
    auto converter = static_cast<ROIConversionImpl*>(self);
    auto format = nv12 ? roiconv::InputFormat::NV12PitchLinear : roiconv::InputFormat::RGB;
    return roiconv::batch_convert_rois(
        converter->gpu_tasks_, converter->tasks_cached_.size(), converter->gpu_problems_,
        converter->problems_cached_.size(), format, roiconv::OutputDType::Float32,
        roiconv::OutputFormat::CHW_RGB, roiconv::Interpolation::Bilinear, static_cast<cudaStream_t>(stream));
}

void roiconvert_delete(void* self) { delete static_cast<ROIConversionImpl*>(self); }
}

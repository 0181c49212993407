// fft_real_inverse: back; parts that a real line does not have are not looked at
// argument {"dtype": "complex64", "shape": [3, 3, 6], "base64": "50B1vhd21T88ecU+vZLvP5tr3L4DXpq/B1ScPsGyhD9tS0C/0LbhPrU52bwCLtY+2fMUP/Q3bz9Gnjg9YRs4v1oK6r64pRe/4xeLv8mgU7/6pys+SEFBv7KcsD6FwMm9sUeEvmDVub8t8kS/ZdqFv7nmCj/l2BM/rNQeQOZUkb1M3Jq+phLEPh1prD5K0/G/pznBPpyqSL/2QCTALjAOv4ur/T06QwU9ad40v7gWFr91PbE/J+duP24Kgr7wsm69lgxHv0hhizxKvl++N89dPPuOKj6JPjU/+VUPv0V48b7ttFe9maqPPxxVrb/NjOs+16hmvty7HT5/kkY/4fMqPdYN/D+kMgU/Kd40P1r4gT/qOos+GA5yP6SFlz++cMA+J3KCP6RwYD/M+NQ/x2XyPXiUij+ZUaA/dmLxveT12bw/U4Q+Fc8EwAx2Nz68P6s//bGaPgjh3D35IE0+5uWVv0FNSL8o+0q++KEGwOtCYr8h8yu/1WkGQI2qAcCQ0P4+JS6LPYfLyL/7pZQ7cdELPzp51r+lJ8y+yiswPyhZ9T9p6l0/w76Gv/FNxD1Vzw/A"}
// argument {"dtype": "complex64", "shape": [5, 5], "base64": "bOaGPX0MBb+kMLK+rzqTPbpK1b75r48/EAoJwKqz8r7Bhto+FVD8Piww1j/a/hk/uFv0v/vCir+o6pU/TPBpPm6XEb+mUnG/GlYWQNYtiD9uPN8+igHpPkZaQL6jM4c8Jn2NP0d7q7/NqQY/LIztPTKrF7/qW0S/x9A1P/i5ND/3vAK/dGH0vSzt5L/Q9U+/mwUCQL7ubD+O/LK+hrY4P1foG79R4he/+mytPlS9lD8Eose/MMeYvhFCrb8fSZ6+sdH/vmeL/T0="}
// result {"value": {"dtype": "float32", "shape": [3, 3, 10], "base64": "HqQIPdYu9jyFybq89t/YPBYd/Tx5gES+g0NTPhW8CD4kIv+9BTK/vfhuKr0FJlg95W+evhpA7r4TJZe+eEovvGnhP72htcg+Yzcbvfg1d70tje69gTtSvjzwlj40Cdg7MoOcvojgRb50lOs+DcMcvXp1ET40sgI/kh1SPT4yo74rFBM9/9hHvriFdz4GJNg+CbRKvvAV2TzFo5y+oBACPdUIA77gzQE+pgjHPRjCKD7magk+xThJPtwemT0tQYI+GOtVvdgzCb9TG4e+gz2LviMd4z3i8Ic9h7esPT80zT4SVwG71sztPEWvOT44Eae9RYNRvddVDj62hzE+v+ZqPryndb4S9Ko8xEgevmtdw72uCVk+TgJrPrGpoD5d3/M+Y/5SvwWlDT50ZzQ+NDjTvqc4Dr4Bz2++S6AoPgnLCT7Sg94+4XRuvoS7KT7hu0a9dsuovZ6P3j5RrjQ+KIfEvnQHjD6nE8o8"}, "compare": {"rtol": 1e-05, "atol": 1e-05}}
// result {"value": {"dtype": "float32", "shape": [5, 9], "base64": "CSgLv+6U+L2XBIo+BrGlvk0PHj8xVbm9rtAJvzRqAz8D35A+ys3VPretob5xbAU/HrCSvczIuz8kKdE+31Yrvh2vDz5VAjq/ZEhzPn0D5z5lCa2++bSBPMnJQL5FzBM/Em54PiNFuL5vRU++5Iluva8qib6eNwQ/qG0NP3d5+L73fGy+wGeMP1jrYr7lPES+CzVAv1cpCT55AIE9lN/2vptfor6E6Wm+2acCPiwgHD+SyHA+"}, "compare": {"rtol": 1e-05, "atol": 1e-05}}
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x3x6xcomplex<f32>>, %arg1: tensor<5x5xcomplex<f32>>) -> (tensor<3x3x10xf32> {jax.result_info = "result[0]"}, tensor<5x9xf32> {jax.result_info = "result[1]"}) {
    %0 = call @fft(%arg0) : (tensor<3x3x6xcomplex<f32>>) -> tensor<3x3x10xf32>
    %1 = call @fft_0(%arg1) : (tensor<5x5xcomplex<f32>>) -> tensor<5x9xf32>
    return %0, %1 : tensor<3x3x10xf32>, tensor<5x9xf32>
  }
  func.func private @fft(%arg0: tensor<3x3x6xcomplex<f32>>) -> tensor<3x3x10xf32> {
    %0 = stablehlo.fft %arg0, type = IRFFT, length = [3, 10] : (tensor<3x3x6xcomplex<f32>>) -> tensor<3x3x10xf32>
    return %0 : tensor<3x3x10xf32>
  }
  func.func private @fft_0(%arg0: tensor<5x5xcomplex<f32>>) -> tensor<5x9xf32> {
    %0 = stablehlo.fft %arg0, type = IRFFT, length = [9] : (tensor<5x5xcomplex<f32>>) -> tensor<5x9xf32>
    return %0 : tensor<5x9xf32>
  }
}

# For Linuxbrew, from a checkout: brew install --HEAD ./packaging/homebrew/trapline.rb
# Never built: only its syntax was looked at, by `ruby -c` (docs/install.md). macOS has neither /proc nor LD_PRELOAD as Linux has.
class Trapline < Formula
  desc "Explains device-side asserts and their relatives in PyTorch programs"
  homepage "https://example.invalid/trapline"
  license "Apache-2.0"
  head "file://#{File.expand_path("../..", __dir__)}", using: :git

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "tomlplusplus" => :build
  depends_on "apache-arrow"
  depends_on "bzip2"
  depends_on "cpp-httplib"
  depends_on "fmt"
  depends_on "hdf5"
  depends_on "highway"
  depends_on "libpng"
  depends_on :linux
  depends_on "prometheus-cpp"
  depends_on "python@3.13"
  depends_on "re2"
  depends_on "simdjson"
  depends_on "sqlite"
  depends_on "xz"
  depends_on "zlib"
  depends_on "zstd"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DTRAPLINE_TESTS=OFF", "-DTRAPLINE_PYTHON=none",
           *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/trapline --version") unless build.head?
    assert_match "--nonsense", shell_output("#{bin}/trapline check labels --nonsense 2>&1", 2) # throws inside
  end
end

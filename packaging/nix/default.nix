# From a checkout: nix-build packaging/nix. Never built: only parsed, by nix-instantiate (docs/install.md).
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "trapline";
  version = "0.1.0";
  src = pkgs.lib.cleanSource ../..;

  nativeBuildInputs = with pkgs; [ cmake ninja pkg-config python3 ];
  buildInputs = with pkgs; [
    arrow-cpp
    bzip2
    cli11
    fmt
    hdf5
    httplib
    libhwy
    libpng
    nlohmann_json
    prometheus-cpp
    re2
    simdjson
    sqlite
    tomlplusplus
    xz
    zlib
    zstd
  ];
  cmakeFlags = [ "-DTRAPLINE_TESTS=OFF" "-DTRAPLINE_PYTHON=none" "-DCMAKE_INSTALL_LIBDIR=lib" ];

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/trapline --version
    ! $out/bin/trapline check labels --nonsense # throws inside
  '';

  meta = {
    description = "Explains device-side asserts and their relatives in PyTorch programs";
    license = pkgs.lib.licenses.asl20;
    platforms = pkgs.lib.platforms.linux;
  };
}

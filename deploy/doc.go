// Package deploy has no code, only the Kubernetes manifests and the tests that hold them and the Dockerfile.
//
// The manifests are decoded strictly into the Kubernetes API types, compared with what the source of those types says
// of required fields and allowed words, and held to rules that no schema knows: that the drain fits into the grace
// period, that a reload reaches the container, that nobody but monitoring sees the admin port. Every rule is a function
// over one file. It runs on the files as they are, and on copies with one word changed, of which it must complain.
package deploy

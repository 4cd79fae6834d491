// Package topology is the one form into which every configuration of retries is read: services, the calls between them,
// and for each call the layers that try it (library, sidecar, gateway, connection), outermost first.
//
// Importers write it (package importer), rules judge it (package lint), and people can read and write it as YAML, to
// add what no file says. Three things are the same for all formats:
//
//   - A number of tries counts the first one: "two retries" is three tries. [Unbounded] stands for no limit.
//   - Each value knows where it comes from: written at file:line:col, inherited, a default of a product and version, or
//     assumed. A value that could not be read is unknown, and what is computed from it is unknown too.
//   - What is repeated is said by outcome and by kind of method ([Repeat]), because a hang, a refused connection and a
//     503 are repeated by different rules in nearly every product.
//
// The package only computes: it reads no file, no clock and no network.
package topology

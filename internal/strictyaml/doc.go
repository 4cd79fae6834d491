// Package strictyaml reads a YAML file into tagged Go structs, strictly: a key that nobody knows is a mistake and not
// ignored, every mistake is reported and not only the first, and each has its file:line:col and says what would be
// right. The policy file and the simulator's scenario are read with it.
//
// A field is written under the key in its yaml tag. Its other tags are:
//
//	range:"1ms..24h"  limits of a number or a duration, as in check.ParseRange; durations without it are not negative
//	enum:"a|b"        the texts that are allowed
//	example:"100ms"   shown in messages and in the schema
//	percent:"true"    a float64 that may also be written as a percentage: "30%" is 0.3
//	keyed:"true"      a []T written as a mapping from T.Name to the rest of T, kept in the order of the file
//	short:"true"      a list member that is one scalar instead of a mapping sets this field of it
//
// By its type a field is a section (a struct), a list (of structs or of scalars), text, true or false, a whole number
// (int, int64, uint64), a number (float64), a duration, text that its type reads itself (encoding.TextUnmarshaler), or
// raw: a yaml.Node is taken as it is. A field of another type is a mistake of the program, and panics.
//
// Values go over those already there: a key left out changes nothing, sections and keyed lists are overlaid key by key,
// other lists are replaced. What a slice points to is never written to, so structs can be copied by assignment before.
package strictyaml

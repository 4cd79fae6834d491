package nginx

import (
	"regexp"
	"slices"
	"strings"
)

var variable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z_0-9]*)\}?`)

// ofRequest are variables that follow the host: they say what is asked of it, not which it is.
var ofRequest = regexp.MustCompile(`\$\{?(request_uri|uri|document_uri|is_args|args|query_string|[1-9])\b\}?.*$`)

// Limits of what is put into the variables of an address: values in values, and addresses in all.
const (
	nested    = 5
	addresses = 50
)

// resolve returns what an address can be, with what the file gives to its variables: by set, also in an if, by map, by
// geo and by split_clients. What only a request decides remains in it.
func (s *scope) resolve(address string) []string {
	all := []string{address}
	for range nested {
		var next []string
		for _, a := range all {
			next = append(next, s.once(a)...)
		}
		if slices.Equal(next, all) || len(next) > addresses {
			break
		}
		all = next
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// once puts the values of the first variable that has any into an address.
func (s *scope) once(address string) []string {
	for _, m := range variable.FindAllStringSubmatchIndex(address, -1) {
		var all []string
		for _, v := range s.values(address[m[2]:m[3]]) {
			all = append(all, address[:m[0]]+v+address[m[1]:])
		}
		if len(all) > 0 {
			return all
		}
	}
	return []string{address}
}

// values returns what the nearest block that gives a variable anything gives it.
func (s *scope) values(name string) []string {
	for ; s != nil; s = s.outer {
		if all := given(s.directives, "$"+name); len(all) > 0 {
			return all
		}
	}
	return nil
}

// given returns what directives give a variable. The last set counts, and each that stands in an if.
func given(directives []*directive, variable string) []string {
	last, sometimes := "", []string(nil)
	for _, d := range directives {
		switch d.name() {
		case "set":
			if name, _ := d.arg(1); name.text == variable {
				if v, ok := d.arg(2); ok {
					last = v.text
				}
			}
		case "if":
			sometimes = append(sometimes, given(d.block, variable)...)
		case "map", "geo", "split_clients":
			if d.words[len(d.words)-1].text == variable && d.opens {
				sometimes = append(sometimes, table(d.block)...)
			}
		}
	}
	if last != "" {
		return append(sometimes, last)
	}
	return sometimes
}

// notValues are the words of a map or a geo that give the variable nothing.
var notValues = []string{"hostnames", "volatile", "include", "delete", "proxy", "proxy_recursive", "ranges"}

// table returns the second words of a block: "v2 stock;", "default orders;", "10% canary;".
func table(block []*directive) []string {
	var all []string
	for _, d := range block {
		if v, ok := d.arg(1); ok && !slices.Contains(notValues, d.name()) && strings.Trim(v.text, `"'`) != "" {
			all = append(all, v.text)
		}
	}
	return all
}

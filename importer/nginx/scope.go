package nginx

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// scope is one block, which inherits what it does not set itself.
type scope struct {
	outer      *scope
	kind       string // http, server, location, if, stream
	name       string // of the server
	path       string
	firm       bool // ^~: no regular expression is looked at
	other      string
	directives []*directive
	upstreams  map[string]*upstream
	first      map[string]*directive // by name, of those without a block; made when it is needed
}

// find returns the directive that holds in a block, and the block that has it.
func (s *scope) find(name string) (*directive, *scope) {
	for ; s != nil; s = s.outer {
		if s.first == nil {
			s.first = map[string]*directive{}
			for _, d := range s.directives {
				if s.first[d.name()] == nil && !d.opens {
					s.first[d.name()] = d
				}
			}
		}
		if d := s.first[name]; d != nil {
			return d, s
		}
	}
	return nil, nil
}

// value returns the first argument of the directive that holds, or the default.
func value[T topology.Scalar](in *instance, s *scope, name string, parse func(string) (T, error), byDefault T,
	at topology.Position) topology.Value[T] {
	d, from := s.find(name)
	if d == nil {
		return topology.DefaultOf(byDefault, in.product(), at)
	}
	w, ok := d.arg(1)
	if !ok {
		return topology.NotKnown[T](name+" has no value", d.at())
	}
	v, remarks := source.Word(w.text, w.at, parse)
	in.form.Remarks = append(in.form.Remarks, remarks...)
	if from != s && v.Origin == topology.Written {
		return topology.Inherit(v.V, v.At, from.kind)
	}
	return v
}

// flag is value for on and off; turned reports that the form means the opposite.
func flag(in *instance, s *scope, name string, byDefault, turned bool) topology.Value[bool] {
	v := value(in, s, name, source.Bool, byDefault, in.at)
	v.V = v.V != turned
	return v
}

// product names whose defaults hold.
func (in *instance) product() string { return "nginx " + in.version.V }

var units = []struct {
	name string
	unit time.Duration
}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
	{"w", 7 * 24 * time.Hour}, {"M", 30 * 24 * time.Hour}, {"y", 365 * 24 * time.Hour}}

// duration reads a time as nginx writes it: 60, 60s, 1m30s, 500ms, 1h 30m. A number alone is seconds.
func duration(word string) (time.Duration, error) {
	total, rest := time.Duration(0), strings.TrimSpace(word)
	bad := fmt.Errorf("%q is no time such as 500ms, 5s or 1m30s", word)
	if rest == "" {
		return 0, bad
	}
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(rest)
		}
		n, err := strconv.ParseInt(rest[:end], 10, 32)
		if err != nil {
			return 0, bad
		}
		rest = rest[end:]
		unit := time.Second
		for _, u := range units {
			if strings.HasPrefix(rest, u.name) {
				unit, rest = u.unit, rest[len(u.name):]
				break
			}
		}
		if rest != "" && (rest[0] < '0' || rest[0] > '9') && rest[0] != ' ' || n > int64(time.Hour*24*365*100/unit) {
			return 0, bad
		}
		total, rest = total+time.Duration(n)*unit, strings.TrimLeft(rest, " ")
	}
	if total < 0 {
		return 0, errors.New("a time below 0")
	}
	return total, nil
}

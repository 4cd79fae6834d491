package workloads

import (
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// Environments returns the variables that workloads and compose files set, by the name of the service in lower case,
// without its namespace. Several workloads of one name are one program run in several ways: of a variable that they set
// differently, the words between commas stay that all of them have. Values that hold a variable are left out, but for
// what holds where that is not set.
func Environments(docs []source.Document) map[string]map[string]string {
	all := map[string]map[string]string{}
	owners := Owners(docs)
	for _, d := range docs {
		switch {
		case isWorkload(d.Root):
			owner := owners.Of(d.Root)
			for _, c := range containers(d.Root) {
				for _, e := range c.Get("env").Items() {
					set(all, owner, e.Get("name").Text(), e.Get("value").Text())
				}
			}
		case isCompose(d.Root):
			for _, p := range d.Root.Get("services").Pairs() {
				env := p.Value.Get("environment")
				for _, e := range env.Pairs() {
					set(all, p.Key, e.Key, e.Value.Text())
				}
				for _, e := range env.Items() {
					name, value, _ := strings.Cut(e.Text(), "=")
					set(all, p.Key, name, value)
				}
			}
		}
	}
	return all
}

// orElse is a variable of the shell that starts compose, with what holds where it is not set: ${WAIT:-120}.
var orElse = regexp.MustCompile(`^\$\{\w+:?-([^${}]+)\}$`)

func set(all map[string]map[string]string, service, name, value string) {
	service, _, _ = strings.Cut(strings.ToLower(service), ".")
	if m := orElse.FindStringSubmatch(value); m != nil {
		value = m[1]
	}
	if service == "" || name == "" || strings.ContainsAny(value, "${}") {
		return
	}
	if all[service] == nil {
		all[service] = map[string]string{}
	}
	was, again := all[service][name]
	if again && was != value {
		words := strings.Split(value, ",")
		value = strings.Join(slices.DeleteFunc(strings.Split(was, ","), func(w string) bool {
			return !slices.Contains(words, w)
		}), ",")
	}
	all[service][name] = value
}

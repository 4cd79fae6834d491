package source

import (
	"strconv"
	"strings"

	"github.com/abate-go/abate/topology"
)

// Assume is what people tell an audit that no file says.
type Assume struct {
	// Versions of products, by their names in lower case: "istio": "1.27". They decide which defaults hold. That of
	// "spring.profiles" is the profiles that are active: "prod,eu".
	Versions map[string]string
	// Implementation is the product that serves Gateway API routes whose class names none: "istio", "envoy-gateway". It
	// may be empty.
	Implementation string
	// Images are the versions of products that tags of images name, by the same names as in Versions.
	Images map[string]topology.Value[string]
	// Given are the names of all files of the audit, those of no known format too: what a file includes may be one that
	// sets nothing.
	Given []string
	// Environments are the variables that workloads set, by their service's name without its namespace. Of one that two
	// workloads of a service set differently, it is the words between commas that both have.
	Environments map[string]map[string]string
}

// Version returns the version of a product: as it was told, else that of the tag of an image, else latest, which is
// assumed.
func (a Assume) Version(product, latest string) topology.Value[string] {
	if v := a.Versions[product]; v != "" {
		return topology.Assume(v, "told on the command line")
	}
	if v, ok := a.Images[product]; ok {
		return v
	}
	return topology.Assume(latest, "no file says the version of "+product)
}

// Before reports whether version v is older than w; both are numbers with dots, and a leading v or trailing words do
// not count. What is no version is not older.
func Before(v, w string) bool {
	a, b := numbers(v), numbers(w)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return len(a) > 0 && len(a) < len(b)
}

func numbers(v string) []int {
	var out []int
	for part := range strings.SplitSeq(strings.TrimPrefix(v, "v"), ".") {
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			break
		}
		if out = append(out, n); end < len(part) {
			break
		}
	}
	return out
}

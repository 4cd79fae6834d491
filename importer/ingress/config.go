package ingress

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// own are keys that a ConfigMap has only if it is that of ingress-nginx.
var own = []string{"proxy-next-upstream", "proxy-next-upstream-tries", "proxy-next-upstream-timeout",
	"retry-non-idempotent"}

// limits are keys that others have too; then the name has to say whose it is.
var limits = []string{"proxy-read-timeout", "proxy-connect-timeout", "proxy-send-timeout"}

// isConfiguration reports whether a ConfigMap is that of ingress-nginx.
func isConfiguration(o source.Resource) bool {
	data := o.Root.Get("data")
	has := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return data.Get(key).Exists() })
	}
	return has(own) || has(limits) && (o.Name == "nginx-configuration" || strings.Contains(o.Name, "ingress-nginx") ||
		o.Namespace == "ingress-nginx" ||
		o.Root.Get("metadata", "labels").Get("app.kubernetes.io/name").Text() == "ingress-nginx")
}

// config returns a value of the ConfigMap of the controller. Of several, nobody knows which is in force, and the first
// is taken.
func (r *reader) config(key string) source.Node {
	for _, o := range r.configs {
		if v := o.Root.Get("data").Get(key); v.Exists() {
			return v
		}
	}
	return source.Node{}
}

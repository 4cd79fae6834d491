package ingress

import (
	"github.com/abate-go/abate/importer/source"
)

func isCanary(o source.Resource) bool { return o.Annotation(nginxPrefix+"canary").Text() == "true" }

// redirects reports whether ingress-nginx answers for all of an Ingress itself, or sends a canary nothing.
func redirects(o source.Resource) bool {
	has := func(key string) bool { return o.Annotation(nginxPrefix+key).Text() != "" }
	if isCanary(o) && o.Annotation(nginxPrefix+"canary-weight").Text() == "0" && !has("canary-by-header") &&
		!has("canary-by-cookie") {
		return true
	}
	return has("permanent-redirect") || has("temporal-redirect")
}

// settings are annotations of how an Ingress is tried.
var settings = []string{"proxy-next-upstream", "proxy-next-upstream-tries", "proxy-next-upstream-timeout",
	"proxy-read-timeout", "proxy-connect-timeout", "proxy-send-timeout"}

// ignored remarks annotations that a canary has for nothing.
func (r *reader) ignored(o source.Resource) {
	for _, key := range settings {
		if n := o.Annotation(nginxPrefix + key); n.Exists() {
			r.remark("F602", n.At(), o.String()+" "+key, "ingress-nginx ignores "+key+" of a canary: that of the Ingress "+
				"beside it holds", "write it there")
		}
	}
}

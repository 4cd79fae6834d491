package importer

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// consulHCL is text of HCL that is worth to be read: config entries of Consul, in files of their own or of Terraform,
// and services that an agent, or a job of Nomad, registers with upstreams.
var consulHCL = regexp.MustCompile(`(?im)^\s*"?kind"?\s*=\s*` +
	`"(service-(router|resolver|splitter|defaults)|proxy-defaults|http-route)"|^resource\s+"consul_config_entry|` +
	`^\s*"?(upstreams|destination_name)"?\s*[={\[]`)

// awsHCL is the same of Terraform's own files: programs in whose environment SDKs of AWS find how to try.
var awsHCL = regexp.MustCompile(`AWS_(MAX_ATTEMPTS|RETRY_MODE)`)

// textsHCL are files of Terraform and of Nomad with other files in them: heredocs, objects of Kubernetes, and values of
// Istio's chart.
var textsHCL = regexp.MustCompile(`(?m)<<-?\w+\s*$|\bapiVersion\s*=|\bmeshConfig\b`)

// isHCL reports whether a text is to be parsed as HCL. meant says that it is a finding if it cannot be.
func isHCL(name string, data []byte) (is, meant bool) {
	extension := strings.ToLower(path.Ext(name))
	if len(data) >= 1<<20 || isTree(extension) || keyed.Match(data[:min(len(data), 4096)]) {
		return false, false
	}
	if consulHCL.Match(data) || extension == ".tf" && awsHCL.Match(data) {
		return true, true
	}
	is = (extension == ".tf" || extension == ".hcl") && textsHCL.Match(data)
	return is, is && known.Match(data)
}

// hcl reads a text of HCL, and the files that are in it: heredocs, which may be of any format, and objects of
// Kubernetes that are written in HCL.
func (r *reading) hcl(d source.Document, seen *Seen) (found bool, remarks []topology.Remark) {
	parsed, remarks := source.HCL(d)
	if len(remarks) > 0 {
		return false, remarks
	}
	found = r.document(parsed, seen)
	return r.inside(parsed, parsed.Root, "", seen) || found, nil
}

// inside reads what stands in a value of a file of Terraform. key is the value's.
func (r *reading) inside(d source.Document, n source.Node, key string, seen *Seen) (found bool) {
	switch {
	case n.IsMap() && n.Get("apiVersion").Exists() && n.Get("kind").Exists():
		d.Root = n
		return r.document(d, seen)
	case n.IsMap():
		for _, p := range n.Pairs() {
			if p.Key == "helm_release" && p.Value.IsMap() {
				for _, release := range p.Value.Pairs() {
					found = r.release(d, release.Value, seen) || found
				}
				continue
			}
			found = r.inside(d, p.Value, p.Key, seen) || found
		}
	case n.IsList():
		for _, item := range n.Items() {
			if d.Root = item; key == "values" && item.IsMap() { // of a release of Helm
				found = r.document(d, seen) || found
				continue
			}
			found = r.inside(d, item, key, seen) || found
		}
	case strings.Contains(n.Text(), "\n"):
		inner := source.Embedded(path.Base(key), n)
		before := len(seen.Formats)
		r.text(inner, key, seen)
		return len(seen.Formats) > before
	case written[key] && expression.MatchString(n.Text()):
		r.unrendered = append(r.unrendered, n)
	}
	return found
}

// release reads the values of a release of Helm: one document, if the release sets some of them by name, and else each
// text by itself.
func (r *reading) release(d source.Document, n source.Node, seen *Seen) (found bool) {
	values, rest, ok := source.HelmValues(n)
	if !ok {
		return r.inside(d, n, "", seen)
	}
	for _, one := range rest {
		found = r.inside(d, one, "values", seen) || found
	}
	d.Root, d.Name = values, "values"
	return r.document(d, seen) || found
}

// written are the keys whose values are files or objects.
var written = map[string]bool{"yaml_body": true, "manifest": true, "values": true}

// expression is a value that Terraform works out from a template. A file that it takes as it is is audited by itself.
var expression = regexp.MustCompile(`^\$\{.*\btemplatefile\(`)

// templateFile finds the file of such a value.
var templateFile = regexp.MustCompile(`\btemplatefile\(\s*"(?:\$\{path\.\w+\}/)?([^"$]+)"`)

// gateway are keys of the values of a chart that are about what an audit reads.
var gateway = regexp.MustCompile(`(?mi)^[ \t-]*(ingress|istio|route\w*|gateway\w*|virtual_?service\w*|mesh\w*)[ \t]*:`)

// notRendered notes the values that only a run of Terraform knows, all together, but for those whose template is
// here and
// is about nothing that an audit reads.
func (r *reading) notRendered(files []File) {
	texts := map[string][]byte{}
	for _, f := range files {
		texts[f.Name] = f.Data
	}
	var left []source.Node
	for _, n := range r.unrendered {
		if m := templateFile.FindStringSubmatch(n.Text()); m != nil {
			text, given := texts[path.Join(path.Dir(n.At().File), m[1])]
			if given && !audited.Match(text) && !gateway.Match(text) {
				continue
			}
		}
		left = append(left, n)
	}
	if len(left) == 0 {
		return
	}
	called := left[0].Text()
	if m := templateFile.FindStringSubmatch(called); m != nil {
		called = `templatefile("` + m[1] + `", …)`
	}
	text := called + " stands where a file belongs, so what it says is not known"
	if more := len(left) - 1; more == 1 {
		text += ", nor is what one more such value says"
	} else if more > 1 {
		text += fmt.Sprintf(", nor is what %d more such values say", more)
	}
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: left[0].At(),
		Subject: "value " + left[0].Text(), Text: text,
		Fix: "give the audit what Terraform makes of it: helm template … | abate audit -, or the objects as they are " +
			"applied"})
}

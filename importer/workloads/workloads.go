package workloads

import (
	"maps"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// kinds are the Kubernetes objects that run pods.
var kinds = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "Rollout": true,
	"ReplicaSet": true, "Pod": true}

// Recognise reports whether d is a Kubernetes Service or workload, or a compose file.
func Recognise(d source.Document) bool {
	return isService(d.Root) || isWorkload(d.Root) || isCompose(d.Root)
}

func isService(n source.Node) bool {
	return n.Get("kind").Text() == "Service" && n.Get("apiVersion").Text() == "v1"
}

func isWorkload(n source.Node) bool { return kinds[n.Get("kind").Text()] && n.Get("metadata").IsMap() }

// laid are the keys of a service of a compose file that is laid over another one, which has the images.
var laid = []string{"environment", "env_file", "ports", "expose", "volumes", "command", "entrypoint", "depends_on",
	"deploy", "labels", "networks", "network_mode", "restart", "healthcheck", "container_name", "profiles", "logging",
	"configs", "secrets", "hostname", "user", "working_dir", "extra_hosts", "links", "platform", "mem_limit"}

// isCompose tells a compose file from other files with services: each of its services has an image or a build, or
// nothing that a compose file does not have.
func isCompose(n source.Node) bool {
	pairs := n.Get("services").Pairs()
	for _, p := range pairs {
		if p.Value.Get("image|build|extends").Exists() {
			continue
		}
		keys := p.Value.Pairs()
		if len(keys) == 0 || slices.ContainsFunc(keys, func(k source.Pair) bool { return !slices.Contains(laid, k.Key) }) {
			return false
		}
	}
	return len(pairs) > 0
}

// Read returns the services and calls that the documents describe.
func Read(docs []source.Document, _ source.Assume) topology.Form {
	r := &reading{owners: Owners(docs)}
	for _, d := range docs {
		switch {
		case isService(d.Root):
			r.service(d.Root)
		case isCompose(d.Root):
			r.compose(d.Root)
		}
	}
	for _, d := range docs {
		if isWorkload(d.Root) {
			r.workload(d.Root)
		}
	}
	return r.form
}

type reading struct {
	form   topology.Form
	owners Owner
}

func (r *reading) service(n source.Node) {
	name, namespace := n.Get("metadata", "name").Text(), n.Get("metadata", "namespace").Text()
	if name == "" {
		return
	}
	s := topology.Service{Name: qualified(name, namespace), At: n.Get("metadata", "name").At(), Speaks: spoken(n),
		Runs: topology.RunsKubernetes}
	if external := n.Get("spec", "externalName").Text(); external != "" {
		s.Aliases = append(s.Aliases, external)
	}
	if ip := n.Get("spec", "clusterIP").Text(); ip != "" && ip != "None" {
		s.Aliases = append(s.Aliases, ip)
	}
	r.form.Services = append(r.form.Services, s)
}

func (r *reading) workload(n source.Node) {
	name := r.owners.Of(n)
	if name == "" {
		return
	}
	s := topology.Service{Name: name, At: n.Get("metadata", "name").At(), Database: database(images(n)),
		Speaks: ofPods(n), Runs: topology.RunsKubernetes}
	switch n.Get("kind").Text() {
	case "DaemonSet":
	case "Pod":
		s.Replicas = topology.DefaultOf(1, "a Pod", n.At())
	default:
		s.Replicas, _ = source.Scalar(n.Get("spec", "replicas"), source.Int)
		if s.Replicas.IsZero() {
			s.Replicas = topology.DefaultOf(1, "Kubernetes", n.At())
		}
	}
	r.form.Services = append(r.form.Services, s)
	for _, other := range r.owners.all(n) {
		if other != name {
			r.form.Leads = append(r.form.Leads, topology.Lead{From: other, To: []string{name}, At: s.At})
		}
	}
	for _, c := range containers(n) {
		if slices.Contains(proxies, c.Get("name").Text()) {
			continue
		}
		for _, e := range c.Get("env").Items() {
			r.variable(name, e.Get("name").Text(), e.Get("value"), n.Get("metadata", "namespace").Text())
		}
	}
}

// proxies are containers of meshes. The addresses in their variables are those of the control plane, which no request
// waits for.
var proxies = []string{"istio-proxy", "linkerd-proxy"}

func (r *reading) compose(n source.Node) {
	for _, p := range n.Get("services").Pairs() {
		s := topology.Service{Name: p.Key, At: p.Name.At(), Database: database([]string{p.Value.Get("image").Text()}),
			Runs: topology.RunsCompose}
		s.Replicas, _ = source.Scalar(p.Value.Get("deploy", "replicas"), source.Int)
		r.form.Services = append(r.form.Services, s)
		env := p.Value.Get("environment")
		for _, e := range env.Pairs() {
			r.variable(p.Key, e.Key, e.Value, "")
		}
		for _, e := range env.Items() {
			if name, _, ok := strings.Cut(e.Text(), "="); ok {
				r.variable(p.Key, name, e, "")
			}
		}
	}
}

// variable adds the call that an environment variable shows, if its value is an address.
func (r *reading) variable(from, name string, value source.Node, namespace string) {
	text := value.Text()
	if value, ok := strings.CutPrefix(text, name+"="); ok {
		text = value
	}
	for _, target := range addresses(name, text) {
		to := target.host
		if namespace != "" && !strings.Contains(to, ".") {
			to += "." + namespace
		}
		said := topology.Service{Name: to, At: value.At(), Database: target.database}
		if target.grpc {
			said.Speaks = topology.Write(topology.SpeaksGRPC, value.At())
		}
		if target.database || target.grpc {
			r.form.Services = append(r.form.Services, said)
		}
		r.form.Calls = append(r.form.Calls, topology.Call{From: from, To: to, At: value.At(),
			PerRequest: topology.Assume(1.0, "the address stands in the variable "+name)})
	}
}

// Owner maps labels of pods to the service that selects them.
type Owner struct {
	services []selecting
	by       map[label][]int // services by the first of their labels, in alphabetical order
}

type label struct{ namespace, key, value string }

type selecting struct {
	name, namespace string
	labels          map[string]string
}

// Owners returns who selects which pods.
func Owners(docs []source.Document) Owner {
	o := Owner{by: map[label][]int{}}
	for _, d := range docs {
		labels := texts(d.Root.Get("spec", "selector"))
		if isService(d.Root) && len(labels) > 0 {
			meta := d.Root.Get("metadata")
			s := selecting{meta.Get("name").Text(), meta.Get("namespace").Text(), labels}
			first := slices.Min(slices.Collect(maps.Keys(labels)))
			key := label{s.namespace, first, labels[first]}
			o.by[key] = append(o.by[key], len(o.services))
			o.services = append(o.services, s)
		}
	}
	return o
}

// Of returns the name of the service that a workload's pods answer for: that of the Service that selects them, else the
// workload's own. It is empty for a workload without a name.
func (o Owner) Of(workload source.Node) string {
	if all := o.all(workload); len(all) > 0 {
		return all[0]
	}
	meta := workload.Get("metadata")
	if name := meta.Get("name").Text(); name != "" {
		return qualified(name, meta.Get("namespace").Text())
	}
	return ""
}

// all returns the names of the Services that select a workload's pods, in the order of the files.
func (o Owner) all(workload source.Node) (names []string) {
	meta := workload.Get("metadata")
	namespace := meta.Get("namespace").Text()
	labels := texts(workload.Get("spec", "template", "metadata", "labels"))
	if workload.Get("kind").Text() == "Pod" {
		labels = texts(meta.Get("labels"))
	}
	var found []int
	for k, v := range labels {
		for _, i := range o.by[label{namespace, k, v}] {
			if contains(labels, o.services[i].labels) {
				found = append(found, i)
			}
		}
	}
	slices.Sort(found)
	for _, i := range found {
		names = append(names, qualified(o.services[i].name, namespace))
	}
	return names
}

func contains(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

// Mounts returns, for each ConfigMap by its qualified name, the service whose pods mount it or take their environment
// from it. A ConfigMap of several services has none.
func Mounts(docs []source.Document) map[string]string {
	owners := Owners(docs)
	by := map[string][]string{}
	for _, d := range docs {
		if !isWorkload(d.Root) {
			continue
		}
		namespace := d.Root.Get("metadata", "namespace").Text()
		add := func(n source.Node) {
			if name := n.Text(); name != "" {
				key, owner := qualified(name, namespace), owners.Of(d.Root)
				if !slices.Contains(by[key], owner) {
					by[key] = append(by[key], owner)
				}
			}
		}
		for _, v := range pod(d.Root).Get("volumes").Items() {
			add(v.Get("configMap", "name"))
			for _, s := range v.Get("projected", "sources").Items() {
				add(s.Get("configMap", "name"))
			}
		}
		for _, c := range containers(d.Root) {
			for _, e := range c.Get("envFrom").Items() {
				add(e.Get("configMapRef", "name"))
			}
		}
	}
	maps.DeleteFunc(by, func(_ string, owners []string) bool { return len(owners) != 1 })
	out := make(map[string]string, len(by))
	for key, owners := range by {
		out[key] = owners[0]
	}
	return out
}

func pod(n source.Node) source.Node {
	if n.Get("kind").Text() == "Pod" {
		return n.Get("spec")
	}
	return n.Get("spec", "template", "spec")
}

func containers(n source.Node) []source.Node { return pod(n).Get("containers").Items() }

func images(n source.Node) []string {
	var all []string
	for _, c := range containers(n) {
		all = append(all, c.Get("image").Text())
	}
	return all
}

func texts(n source.Node) map[string]string {
	out := map[string]string{}
	for _, p := range n.Pairs() {
		out[p.Key] = p.Value.Text()
	}
	return out
}

func qualified(name, namespace string) string {
	if namespace == "" {
		return name
	}
	return name + "." + namespace
}

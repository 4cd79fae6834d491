package policyfile

import (
	"bytes"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/strictyaml"
)

// File is a checked policy file. Its policies are complete: what a service left out is filled in from the defaults, and
// what those left out from abate.DefaultPolicy. Fields that are still zero take the default that their comment names.
type File struct {
	Name           string       // as given to Parse
	Defaults       abate.Policy // for services that the file does not list
	Services       []Service    // in the order of the file
	GatewayRetries bool         // whether a gateway in front of the services may retry too
}

// Service is one entry of services.
type Service struct {
	Name   string
	Policy abate.Policy
}

// Limits of a policy file. More than this is a mistake, not a policy.
const (
	MaxBytes    = strictyaml.MaxBytes // size of the file: 1 MiB
	MaxServices = strictyaml.MaxNames // entries in services: 10,000
)

// form is how messages call a policy file.
var form = strictyaml.Form{
	Noun:  "policy",
	Least: `it needs at least one of defaults, services and gatewayRetries; for example "defaults: {maxRetries: 3}"`,
	Key:   "maxRetries",
}

var topKeys = []string{"defaults", "services", "gatewayRetries"}

// decoder reads one policy file.
type decoder struct {
	*strictyaml.Document
	begin *yaml.Node // where the policy begins
}

// Parse checks a policy file, plain or in a ConfigMap, and makes no guards. name stands in the messages. The error is
// an Errors with every mistake. No input makes it panic, and its work is bounded whatever the aliases in the file say.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > MaxBytes {
		_, err := Read(name, bytes.NewReader(data))
		return nil, err
	}
	d := &decoder{Document: &strictyaml.Document{Form: form, File: name}, begin: &yaml.Node{Line: 1, Column: 1}}
	return d.result(d.read(data))
}

// ParseNode is Parse for a plain policy file that stands inside another YAML file, which is parsed already. name is the
// other file: mistakes are at the lines and columns of its nodes.
func ParseNode(name string, n *yaml.Node) (*File, error) {
	if n == nil || n.IsZero() {
		return nil, Errors{{File: name, Problem: "there is no policy", Mend: form.Least}}
	}
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	d := &decoder{Document: &strictyaml.Document{Form: form, File: name}, begin: n}
	var file *File
	if entries, ok := d.Entries(n, "", "", form.Least); ok {
		file = d.top(entries)
	}
	return d.result(file)
}

func (d *decoder) result(file *File) (*File, error) {
	if errs := d.Errors(); len(errs) > 0 {
		return nil, published(errs)
	}
	return file, nil
}

// Policy is the policy of a service, and whether the file lists it: one that it does not list has the defaults.
func (f *File) Policy(service string) (p abate.Policy, listed bool) {
	for i := range f.Services {
		if f.Services[i].Name == service {
			return own(f.Services[i].Policy), true
		}
	}
	return own(f.Defaults), false
}

func (d *decoder) read(data []byte) *File {
	root := d.Root(data)
	if root == nil {
		return nil
	}
	entries, ok := d.Entries(root, "", "", form.Least)
	if !ok {
		return nil
	}
	if isConfigMap(entries) {
		if root = d.configMap(entries, data); root == nil {
			return nil
		}
		if entries, ok = d.Entries(root, "", "", form.Least); !ok {
			return nil
		}
	}
	return d.top(entries)
}

func (d *decoder) top(entries []strictyaml.Entry) *File {
	f := &File{Name: d.File}
	var services []strictyaml.Entry
	base := &policyReader{Positions: &strictyaml.Positions{Document: d.Document, Prefix: "defaults"}}
	policy := abate.DefaultPolicy()
	known := 0
	for _, e := range entries {
		key := e.Key.Value
		switch {
		case (key == "defaults" || key == "services") && strictyaml.IsNull(e.Value): // perhaps the rest of the file is missing
			d.Fail(strictyaml.Resolve(e.Value), "", key, "has no value", "write {} or remove the key")
		case key == "defaults":
			base.Where = e.Key
			base.read(&policy, e.Value)
		case key == "services":
			services, _ = d.Names(e.Value, "", "services", "for example {payment-service: {maxRetries: 3}}")
		case key == "gatewayRetries":
			d.gateway(e.Value, &f.GatewayRetries)
		case strictyaml.Reserved(key):
			continue
		default:
			d.Fail(e.Key, "", "", "unknown key "+strictyaml.Quote(key), strictyaml.Suggest(key, topKeys))
			continue
		}
		known++
	}
	if known == 0 && len(d.Errors()) == 0 {
		d.FailAt(d.begin.Line, d.begin.Column, "the file has no policy", form.Least)
	}
	f.Defaults = policy
	base.check(&f.Defaults, nil)
	d.services(f, base, services)
	return f
}

func (d *decoder) services(f *File, base *policyReader, entries []strictyaml.Entry) {
	readers := make([]*policyReader, 0, len(entries))
	for _, e := range entries {
		s := Service{Name: e.Key.Value, Policy: own(f.Defaults)}
		r := &policyReader{Positions: &strictyaml.Positions{Document: d.Document, Service: s.Name, Where: e.Key}}
		r.read(&s.Policy, e.Value)
		r.check(&s.Policy, base)
		f.Services, readers = append(f.Services, s), append(readers, r)
		if d.Stopped() {
			return
		}
	}
	d.claims(f.Services, readers)
}

func (d *decoder) gateway(n *yaml.Node, into *bool) {
	f := strictyaml.Field{Key: "gatewayRetries", Kind: strictyaml.Toggle}
	n = strictyaml.Resolve(n)
	if problem, mend := f.Scalar(n, reflect.ValueOf(into).Elem()); problem != "" {
		d.Fail(n, "", f.Key, problem, mend)
	}
}

package policyfile

import (
	"bytes"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
)

// File is a checked policy file. Its policies are complete: what a service left out is filled in from the defaults, and
// what those left out from abate.DefaultPolicy; what one for connections left out from abate.ConnectionPolicy. Fields
// that are still zero take the default that their comment names.
type File struct {
	Name           string    // as given to Parse
	Defaults       Policy    // for services that the file does not list
	Services       []Service // in the order of the file
	GatewayRetries bool      // whether a gateway in front of the services may retry too
	// what is done with doubtful paths of calls that go out: a word of PathRules; empty means normalize
	AmbiguousPaths string
	Protect        []Protected // what is received, in the order of the file
	Redis          Redis       // what instances share limits, budgets and keys through; off when the file has none
	Outside        Outside     // what programs may reach beside the services; nothing when the file has none
}

// Service is one entry of services.
type Service struct {
	Name   string
	Preset Preset // what it began with; empty means Calls
	Policy Policy
}

// Limits of a policy file. More than this is a mistake, not a policy.
const (
	MaxBytes    = strictyaml.MaxBytes // size of the file: 1 MiB
	MaxServices = strictyaml.MaxNames // entries in services, and in protect: 10,000
)

// form is how messages call a policy file.
var form = strictyaml.Form{
	Noun: "policy",
	Least: `it needs at least one of defaults, services, gatewayRetries and protect; for example "defaults: ` +
		`{maxRetries: 3}"`,
	Key: "maxRetries",
}

var topKeys = []string{"defaults", "services", "gatewayRetries", "ambiguousPaths", "protect", "redis", "outside"}

// decoder reads one policy file.
type decoder struct {
	*strictyaml.Document
	begin *yaml.Node           // where the policy begins
	ahead *strictyaml.Document // reads a little ahead; its mistakes are found again
}

func newDecoder(name string, begin *yaml.Node) *decoder {
	return &decoder{
		Document: &strictyaml.Document{Form: form, File: name}, begin: begin, ahead: &strictyaml.Document{Form: form},
	}
}

// Parse checks a policy file, plain or in a ConfigMap, and makes no guards. name stands in the messages. The error is
// an Errors with every mistake. No input makes it panic, and its work is bounded whatever the aliases in the file say.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > MaxBytes {
		_, err := Read(name, bytes.NewReader(data))
		return nil, err
	}
	d := newDecoder(name, &yaml.Node{Line: 1, Column: 1})
	return d.result(d.read(data))
}

// ParseNode is Parse for a plain policy file that stands inside another YAML file, which is parsed already. name is the
// other file: mistakes are at the lines and columns of its nodes.
func ParseNode(name string, n *yaml.Node) (*File, error) {
	if n == nil || n.IsZero() {
		return nil, Errors{{File: name, Problem: "there is no policy", Fix: form.Least}}
	}
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	d := newDecoder(name, n)
	var file *File
	if entries, ok := d.Entries(n, "", "", form.Least); ok {
		file = d.top(entries)
	}
	return d.result(file)
}

func (d *decoder) result(file *File) (*File, error) {
	if errs := d.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return file, nil
}

// Policy is the policy of a service, and whether the file lists it: one that it does not list has the defaults.
func (f *File) Policy(service string) (p Policy, listed bool) {
	for i := range f.Services {
		if f.Services[i].Name == service {
			return f.Services[i].Policy.own(), true
		}
	}
	return f.Defaults.own(), false
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
	values, useful := d.topValues(entries)
	if !useful && len(d.Errors()) == 0 {
		d.FailAt(d.begin.Line, d.begin.Column, "the file has no policy", form.Least)
	}
	if e, ok := values["gatewayRetries"]; ok {
		d.scalar(e.Value, strictyaml.Field{Key: "gatewayRetries", Kind: strictyaml.Toggle},
			reflect.ValueOf(&f.GatewayRetries))
	}
	if e, ok := values["ambiguousPaths"]; ok {
		d.scalar(e.Value, strictyaml.Field{Key: "ambiguousPaths", Kind: strictyaml.Word, Allowed: PathRules},
			reflect.ValueOf(&f.AmbiguousPaths))
	}
	if e, ok := values["outside"]; ok {
		d.outside(e, &f.Outside)
	}
	redis, shared := values["redis"]
	if shared {
		d.redis(redis, &f.Redis)
	}
	var services, protect []strictyaml.Entry
	if e, ok := values["services"]; ok {
		services, _ = d.Names(e.Value, "", "services", "for example {payment-service: {maxRetries: 3}}")
	}
	if e, ok := values["protect"]; ok {
		protect, _ = d.Names(e.Value, "", "protect",
			`for example {orders: {listen: "0.0.0.0:8080", upstreams: ["http://127.0.0.1:9000"]}}`)
	}
	defaults := entry{Policy: DefaultPolicy()}
	base := d.reader(policyShape, "", "defaults", values["defaults"].Key)
	if e, ok := values["defaults"]; ok {
		base.policy(&defaults, e.Value)
	}
	base.checkPolicy(&defaults, nil)
	f.Defaults = defaults.Policy
	all := append([]*reader{base}, d.services(f, base, services)...)
	all = append(all, d.protect(f, protect)...)
	d.rewrites(f, all[1:])
	if !shared {
		for _, r := range all {
			r.needRedis()
		}
	}
	return f
}

// topValues sorts out the keys of the file, and reports whether one of them says what is to be done. A key that is
// there without a value is a mistake: perhaps the rest of the file is missing.
func (d *decoder) topValues(entries []strictyaml.Entry) (values map[string]strictyaml.Entry, useful bool) {
	values = map[string]strictyaml.Entry{}
	for _, e := range entries {
		key := e.Key.Value
		switch {
		case strictyaml.Reserved(key):
			continue
		case !slices.Contains(topKeys, key):
			d.Fail(e.Key, "", "", "unknown key "+strictyaml.Quote(key), strictyaml.Suggest(key, topKeys))
			continue
		case key != "gatewayRetries" && key != "ambiguousPaths" && strictyaml.IsNull(e.Value):
			d.Fail(strictyaml.Resolve(e.Value), "", key, "has no value", "write {} or remove the key")
		default:
			values[key] = e
		}
		useful = useful || key != "redis" && key != "ambiguousPaths" && key != "outside"
	}
	return values, useful
}

func (d *decoder) services(f *File, base *reader, entries []strictyaml.Entry) []*reader {
	readers := make([]*reader, 0, len(entries))
	builtIn := d.reader(policyShape, "", "", nil)
	base.gives, builtIn.gives = "inherited", "from the preset"
	for _, e := range entries {
		name, under, s := e.Key.Value, base, entry{Preset: d.presetOf(e.Value)}
		if s.Preset == Connections {
			under, s.Policy = builtIn, d.connections(e.Value)
		} else {
			s.Policy = f.Defaults.own()
		}
		r := d.reader(policyShape, name, "", e.Key)
		r.policy(&s, e.Value)
		r.checkPolicy(&s, under)
		f.Services, readers = append(f.Services, Service{name, s.Preset, s.Policy}), append(readers, r)
		if d.Stopped() {
			return readers
		}
	}
	d.claims(f.Services, readers)
	return readers
}

// scalar reads a key of the file that is neither a list nor a mapping.
func (d *decoder) scalar(n *yaml.Node, f strictyaml.Field, into reflect.Value) {
	n = strictyaml.Resolve(n)
	if problem, fix := f.Scalar(n, into.Elem()); problem != "" {
		d.Fail(n, "", f.Key, problem, fix)
	}
}

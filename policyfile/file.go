package policyfile

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate"
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
	MaxBytes    = 1 << 20 // size of the file
	MaxServices = 10_000  // entries in services

	maxErrors = 1_000     // reported mistakes
	maxVisits = 1_000_000 // YAML nodes looked at, those behind aliases counted each time
)

// Parse checks a policy file, plain or in a ConfigMap, and makes no guards. name stands in the messages. The error is
// an Errors with every mistake. No input makes it panic, and its work is bounded whatever the aliases in the file say.
func Parse(name string, data []byte) (*File, error) {
	d := &decoder{file: name}
	if len(data) > MaxBytes {
		return nil, tooLarge(name)
	}
	file := d.read(data)
	if len(d.errs) > 0 {
		return nil, d.mistakes()
	}
	return file, nil
}

func tooLarge(name string) error {
	return Errors{{File: name, Line: 1, Col: 1, Problem: "the file is larger than 1 MiB", Mend: "allowed: at most 1048576 bytes; this is hardly a policy file"}}
}

func (d *decoder) read(data []byte) *File {
	root := d.document(data)
	if root == nil {
		return nil
	}
	entries, ok := d.entries(root, "", "", atLeast)
	if !ok {
		return nil
	}
	if isConfigMap(entries) {
		if root = d.configMap(entries, data); root == nil {
			return nil
		}
		if entries, ok = d.entries(root, "", "", atLeast); !ok {
			return nil
		}
	}
	return d.top(entries)
}

const atLeast = `it needs at least one of defaults, services and gatewayRetries; for example "defaults: {maxRetries: 3}"`

var topKeys = []string{"defaults", "services", "gatewayRetries"}

func (d *decoder) top(entries []entry) *File {
	f := &File{Name: d.file}
	var services []entry
	base := &policyReader{d: d}
	policy := abate.DefaultPolicy()
	known := 0
	for _, e := range entries {
		key := e.key.Value
		switch {
		case (key == "defaults" || key == "services") && isNull(e.value): // perhaps the rest of the file is missing
			d.fail(resolve(e.value), "", key, "has no value", "write {} or remove the key")
		case key == "defaults":
			base.where = e.key
			base.read(&policy, e.value)
		case key == "services":
			services, _ = d.entries(e.value, "", "services", "for example {payment-service: {maxRetries: 3}}")
		case key == "gatewayRetries":
			d.gateway(e.value, &f.GatewayRetries)
		case len(key) > 2 && key[:2] == "x-":
			continue
		default:
			d.fail(e.key, "", "", "unknown key "+quote(key), suggest(key, topKeys))
			continue
		}
		known++
	}
	if known == 0 && len(d.errs) == 0 {
		d.failAt(1, 1, "the file has no policy", atLeast)
	}
	f.Defaults = policy
	base.check(&f.Defaults, nil)
	d.services(f, base, services)
	return f
}

func (d *decoder) services(f *File, base *policyReader, entries []entry) {
	if len(entries) > MaxServices {
		d.fail(entries[MaxServices].key, "", "services", fmt.Sprintf("%d services are too many", len(entries)), fmt.Sprintf("allowed: at most %d", MaxServices))
		return
	}
	readers := make([]*policyReader, 0, len(entries))
	for _, e := range entries {
		if problem := nameProblem(e.key.Value); problem != "" {
			d.fail(e.key, "", "services", quote(e.key.Value)+" "+problem, `allowed: 1 to 253 printable characters without spaces around; for example payment-service`)
			continue
		}
		r := &policyReader{d: d, service: e.key.Value, where: e.key}
		s := Service{Name: r.service, Policy: own(f.Defaults)}
		r.read(&s.Policy, e.value)
		r.check(&s.Policy, base)
		f.Services, readers = append(f.Services, s), append(readers, r)
		if d.stopped() {
			return
		}
	}
	d.claims(f.Services, readers)
}

// nameProblem tells what is wrong with the name of a service: it becomes a label in errors, logs and metrics.
func nameProblem(name string) string {
	const longest = 253
	switch {
	case name == "":
		return "is no name"
	case len(name) > longest:
		return "is too long for a name"
	case strings.TrimSpace(name) != name, strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has characters that a name cannot have"
	}
	return ""
}

func (d *decoder) gateway(n *yaml.Node, into *bool) {
	f := field{key: "gatewayRetries", kind: toggle}
	n = resolve(n)
	if problem, mend := f.scalar(n, reflect.ValueOf(into).Elem()); problem != "" {
		d.fail(n, "", f.key, problem, mend)
	}
}

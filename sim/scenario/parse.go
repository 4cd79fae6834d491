package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/policyfile"
	"go.yaml.in/yaml/v3"
)

// form is how messages call a scenario.
var form = strictyaml.Form{
	Noun: "scenario",
	Least: `it needs duration, clients and services; for example "{duration: 1m, clients: {shop: {rate: 100, calls: ` +
		`[db]}}, services: {db: {}}}"`,
	Key: "duration",
}

// Load reads and checks a scenario file, as Parse does. Files above 1 MiB are refused without reading on.
func Load(path string) (*Scenario, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would never end
		return nil, fmt.Errorf("scenario: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	defer f.Close()
	data, err := form.Read(path, f)
	var mistakes strictyaml.Errors
	switch {
	case errors.As(err, &mistakes):
		return nil, mistakes
	case err != nil:
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return Parse(path, data)
}

// Parse checks a scenario, fills in its defaults and divides it by its scale. name stands in messages, and paths of
// policy files are relative to its folder. The error lists every mistake, one per line, in the order of the file; those
// in policy files come last. No input makes it panic, and its work is bounded whatever the aliases in the file say.
func Parse(name string, data []byte) (*Scenario, error) {
	s := withDefaults()
	s.File = name
	at, mistakes := form.Decode(name, data, &s)
	if at.Where == nil || len(at.Failed()) > 0 && at.Failed()[0] == "" || at.Stopped() {
		return nil, mistakes
	}
	r := &reader{mistakes: newMistakes(at), s: &s}
	if r.fewEnough() {
		r.variants()
		r.fill()
		c := newChecker(r.mistakes, &s)
		c.check()
		// Only a scenario without mistakes is divided by its scale and has a size.
		for _, step := range []func(){c.scale, c.population, c.size} {
			if len(at.Errors()) == 0 && len(r.elsewhere) == 0 {
				step()
			}
		}
	}
	if found := append(at.Errors(), r.elsewhere...); len(found) > 0 {
		return nil, found
	}
	return &s, nil
}

// Most entries of the keyed lists. Every variant has a copy of the services, so that more would need gigabytes.
const (
	maxFleets   = 1000
	maxServices = 1000
	maxVariants = 50
	maxCalls    = 5000 // of all fleets and services together
)

// reader reads what a scenario has besides single values: variants with their policies, and defaults that depend on
// other settings.
type reader struct {
	*mistakes
	s         *Scenario
	elsewhere strictyaml.Errors // mistakes in policy files
}

// fewEnough reports whether the keyed lists are short enough to be looked at further.
func (r *reader) fewEnough() bool {
	few := true
	for _, list := range []struct {
		path       string
		have, most int
	}{
		{"clients", len(r.s.Clients), maxFleets},
		{"services", len(r.s.Services), maxServices},
		{"variants", len(r.s.Variants), maxVariants},
	} {
		if list.have > list.most {
			few = false
			r.Add(list.path, fmt.Sprintf("%d entries are too many", list.have), fmt.Sprintf("allowed: at most %d", list.most))
		}
	}
	return few && r.fewCalls("services", r.s.Services)
}

// fewCalls reports whether the calls can all be compared with all policies.
func (r *reader) fewCalls(path string, services []Service) bool {
	n := 0
	for i := range r.s.Clients {
		n += len(Edges(r.s.Clients[i].Calls))
	}
	for i := range services {
		n += len(Edges(services[i].Calls))
	}
	if n > maxCalls {
		r.Add(path, fmt.Sprintf("%d calls are too many", n), fmt.Sprintf("allowed: at most %d", maxCalls))
	}
	return n <= maxCalls
}

// fill writes out the defaults that depend on other settings.
func (r *reader) fill() {
	s := r.s
	if s.Name == "" {
		base := filepath.Base(s.File)
		s.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if len(s.Variants) == 0 {
		s.Variants = []Variant{{Name: "default"}}
	}
	for i := range s.Clients {
		f := &s.Clients[i]
		if f.Daily.Swing > 0 && !r.Has("clients."+f.Name+".daily.peak") {
			f.Daily.Peak = 14 * time.Hour
		}
	}
}

// variants reads the policies of all variants, and what they override.
func (r *reader) variants() {
	for i := range r.s.Variants {
		v := &r.s.Variants[i]
		path := "variants." + v.Name
		if !v.Policy.IsZero() {
			file, err := policyfile.ParseNode(r.s.File, &v.Policy)
			for _, e := range policyErrors(err) {
				// The policy is inline, so that the place is one of this file.
				r.Fail(&yaml.Node{Line: e.Line, Column: e.Col}, e.Service, e.Field, e.Problem, e.Fix)
			}
			v.Guards = file
		}
		switch {
		case v.PolicyFile == "":
		case !v.Policy.IsZero():
			r.Add(path+".policyFile", "excludes policy", "keep one of the two")
		default:
			v.Guards = r.policyFile(path+".policyFile", v.PolicyFile)
		}
		if !v.Services.IsZero() {
			v.Overrides = r.s.Services
			r.DecodeNode(path+".services", &v.Services, &v.Overrides)
			if !r.fewCalls(path+".services", v.Overrides) {
				v.Overrides = nil
			}
		}
		if r.Stopped() {
			return
		}
	}
	r.noteFailed()
}

// policyFile reads the policy file that a variant names.
func (r *reader) policyFile(path, file string) *policyfile.File {
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(r.s.File), file)
	}
	data, err := readPolicy(file)
	var at *fs.PathError
	var parsed *policyfile.File
	if err == nil {
		parsed, err = policyfile.Parse(file, data)
	}
	switch list := policyErrors(err); {
	case errors.As(err, &at):
		r.Add(path, strictyaml.Quote(file)+" cannot be read: "+at.Err.Error(),
			"the path is relative to the folder of the scenario")
	case err != nil && list == nil:
		r.Add(path, strictyaml.Quote(file)+" cannot be read: "+err.Error(), "")
	default:
		r.elsewhere = append(r.elsewhere, list...)
	}
	return parsed
}

// readPolicy reads a regular file: reading a device or a pipe might never end.
func readPolicy(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: file, Err: errors.New("it is not a regular file")}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return policyfile.Read(file, f)
}

// policyErrors takes apart what package policyfile found.
func policyErrors(err error) (found policyfile.Errors) {
	errors.As(err, &found)
	return found
}

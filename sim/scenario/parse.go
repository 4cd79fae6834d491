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
	c := newChecker(at, &s)
	if c.fewEnough() {
		c.readVariants()
		c.fill()
		c.check()
		c.finish()
	}
	if found := append(at.Errors(), c.elsewhere...); len(found) > 0 {
		return nil, found
	}
	return &s, nil
}

// finish does what only a scenario without mistakes allows: dividing it, and judging its size.
func (c *checker) finish() {
	for _, step := range []func(){c.scale, c.crowd, c.size} {
		if len(c.Errors()) > 0 || len(c.elsewhere) > 0 {
			return
		}
		step()
	}
}

// Most entries of the keyed lists. Every variant has a copy of the services, so that more would need gigabytes.
const (
	maxFleets   = 1000
	maxServices = 1000
	maxVariants = 50
	maxCalls    = 5000 // of all fleets and services together
)

func (c *checker) fewEnough() bool {
	few := true
	for _, list := range []struct {
		path       string
		have, most int
	}{
		{"clients", len(c.s.Clients), maxFleets},
		{"services", len(c.s.Services), maxServices},
		{"variants", len(c.s.Variants), maxVariants},
	} {
		if list.have > list.most {
			few = false
			c.Add(list.path, fmt.Sprintf("%d entries are too many", list.have), fmt.Sprintf("allowed: at most %d", list.most))
		}
	}
	return few && c.fewCalls("services", c.s.Services)
}

// fewCalls reports whether the calls can all be compared with all policies.
func (c *checker) fewCalls(path string, services []Service) bool {
	n := 0
	for i := range c.s.Clients {
		n += len(c.s.Clients[i].Calls)
	}
	for i := range services {
		n += len(services[i].Calls)
	}
	if n > maxCalls {
		c.Add(path, fmt.Sprintf("%d calls are too many", n), fmt.Sprintf("allowed: at most %d", maxCalls))
	}
	return n <= maxCalls
}

// fill writes out the defaults that depend on other settings.
func (c *checker) fill() {
	s := c.s
	if s.Name == "" {
		base := filepath.Base(s.File)
		s.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if len(s.Variants) == 0 {
		s.Variants = []Variant{{Name: "default"}}
	}
	for i := range s.Clients {
		f := &s.Clients[i]
		if f.Daily.Swing > 0 && !c.Has("clients."+f.Name+".daily.peak") {
			f.Daily.Peak = 14 * time.Hour
		}
	}
}

// readVariants reads the policies of all variants, and what they override.
func (c *checker) readVariants() {
	for i := range c.s.Variants {
		v := &c.s.Variants[i]
		path := "variants." + v.Name
		if !v.Policy.IsZero() {
			file, err := policyfile.ParseNode(c.s.File, &v.Policy)
			for _, e := range policyErrors(err) {
				c.inline(e)
			}
			v.Guards = file
		}
		switch {
		case v.PolicyFile == "":
		case !v.Policy.IsZero():
			c.Add(path+".policyFile", "excludes policy", "keep one of the two")
		default:
			v.Guards = c.policyFile(path+".policyFile", v.PolicyFile)
		}
		if !v.Services.IsZero() {
			v.Overrides = c.s.Services
			c.DecodeNode(path+".services", &v.Services, &v.Overrides)
			if !c.fewCalls(path+".services", v.Overrides) {
				v.Overrides = nil
			}
		}
		if c.Stopped() {
			return
		}
	}
	c.noteFailed()
}

// policyFile reads the policy file that a variant names.
func (c *checker) policyFile(path, file string) *policyfile.File {
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(c.s.File), file)
	}
	data, err := readPolicy(file)
	var at *fs.PathError
	var parsed *policyfile.File
	if err == nil {
		parsed, err = policyfile.Parse(file, data)
	}
	switch list := policyErrors(err); {
	case errors.As(err, &at):
		c.Add(path, strictyaml.Quote(file)+" cannot be read: "+at.Err.Error(),
			"the path is relative to the folder of the scenario")
	case err != nil && list == nil:
		c.Add(path, strictyaml.Quote(file)+" cannot be read: "+err.Error(), "")
	default:
		c.elsewhere = append(c.elsewhere, list...)
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

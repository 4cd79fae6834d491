// Package abateadmin shows guards and gates on one live page.
package abateadmin

import (
	"net/http"

	"github.com/abate-go/abate"
)

// Config is what a Page is made with. The zero Config is usable.
type Config struct {
	// Title stands at the top of the page, such as the name of the program. Empty means "abate".
	Title string
	// Known tells whether whoever sends the request may change something; nil: nobody may.
	Known func(*http.Request) bool
	// Reload loads the policy file again; nil if there is none.
	Reload func() error
}

// Page shows what guards and gates do. It is safe for concurrent use. Make one with New.
type Page struct{ config Config }

// New returns a page without guards.
func New(c Config) *Page { return &Page{config: c} }

// Adjust makes the policy of a service tell the page what its guard does: an argument for policyfile.Load.
func (p *Page) Adjust(service string, policy *abate.Policy) {}

// Add shows these guards.
func (p *Page) Add(guards ...*abate.Guard) {}

// AdjustProtection makes a protection tell the page what its gate does.
func (p *Page) AdjustProtection(name string, protection *abate.Protection) {}

// AddGate shows these gates.
func (p *Page) AddGate(gates ...*abate.Gate) {}

// ServeHTTP serves the page at / and what it needs below it.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

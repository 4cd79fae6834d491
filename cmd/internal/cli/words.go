// Package cli is what the commands of all our programs share: the table of commands, and how words are read.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/abate-go/abate/internal/nearest"
	"github.com/abate-go/abate/policyfile"
)

// Off is the address of what is not listened for.
const Off = "off"

// StdinName is what messages call standard input.
const StdinName = "<stdin>"

// ParseAll reads flags wherever they stand, after files too, and returns the files.
func ParseAll(flags *flag.FlagSet, args []string) (files []string, err error) {
	for len(args) > 0 && err == nil {
		err = flags.Parse(args)
		rest := flags.Args()
		if end := len(args) - len(rest); end > 0 && args[end-1] == "--" {
			return append(files, rest...), err
		}
		if args = rest; len(args) > 0 {
			files, args = append(files, args[0]), args[1:]
		}
	}
	return files, err
}

func PolicyFile(name string) (*policyfile.File, error) {
	in := os.Stdin
	if name != StdinName {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := policyfile.Read(name, in)
	if err != nil {
		return nil, err
	}
	return policyfile.Parse(name, data)
}

func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// IsAddress reports whether addr is a host, which may be empty, and a port.
func IsAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

// IsListen reports whether address is one to listen at: IsAddress, or unix:/PATH.
func IsListen(address string) bool {
	_, _, socket := policyfile.Socket(address)
	return socket || !strings.HasPrefix(address, "unix:") && IsAddress(address)
}

// AddressProblem says what is wrong with the address of a flag that is neither IsListen nor Off, and shows an example.
func AddressProblem(flag, addr, example string) error {
	switch {
	case addr == Off || IsListen(addr):
		return nil
	case strings.HasPrefix(addr, "unix:"):
		return fmt.Errorf("%s %q is not the address of a Unix socket: write unix: and a path of at most 103 bytes that "+
			"begins with /, and perhaps ?mode=0660", flag, addr)
	}
	return fmt.Errorf("%s %q is not an address: write host:port, for example %s, unix:/PATH, or off", flag, addr, example)
}

// Each lists the errors that one joins.
func Each(err error) []error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var all []error
	for _, one := range many.Unwrap() { // which may be joined ones themselves
		all = append(all, Each(one)...)
	}
	return all
}

func ListenProblem(err error) string {
	var op *net.OpError
	socket := errors.As(err, &op) && op.Net == "unix"
	switch {
	case socket && errors.Is(err, syscall.EADDRINUSE):
		return "another program listens at that socket already (perhaps another abate proxy); choose another path or stop it"
	case socket && errors.Is(err, syscall.EACCES):
		return "not allowed: this user may not make a file in that folder; choose another one, or give it to the user"
	case socket && errors.Is(err, syscall.ENOENT):
		return "its folder is not there: make it"
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program listens there already (perhaps another abate proxy); choose another port or stop it"
	case errors.Is(err, syscall.EACCES):
		return "not allowed: ports below 1024 need a privilege; choose a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address; 127.0.0.1 is for this machine only, 0.0.0.0 for all its addresses"
	}
	return err.Error()
}

// CutFlag is a word without its value.
func CutFlag(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

// SuggestVariant says which variant may have been meant, or else which there are.
func SuggestVariant(name string, known []string) string {
	if near := nearest.To(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are: " + strings.Join(known, ", ")
}

// SuggestFlag says which flag may have been meant.
func SuggestFlag(set *flag.FlagSet, name string) string {
	var known []string
	set.VisitAll(func(f *flag.Flag) {
		if len(f.Name) > 1 {
			known = append(known, f.Name)
		}
	})
	if near := nearest.To(name, known); near != "" {
		return "; did you mean --" + near + "?"
	}
	return ""
}

// Parts lists the parts of a protection that are on.
func Parts(p *policyfile.Protection) string {
	var on []string
	part := func(enabled, shadow bool, text string) {
		if shadow {
			text += " (shadow)"
		}
		if enabled {
			on = append(on, text)
		}
	}
	limit := "rate limit " + p.RateLimit.Limit.String()
	if p.RateLimit.Key != "" {
		limit += " by " + p.RateLimit.Key
	}
	part(p.Authentication.Enabled(), false, "authentication")
	part(p.TLS.ClientCA != "", false, "mutual TLS")
	part(p.Timeout > 0, false, "timeout "+p.Timeout.String())
	part(p.RateLimit.Enabled(), p.RateLimit.Shadow, limit)
	part(p.Shed.Enabled(), p.Shed.Shadow, "shed")
	part(p.Idempotency.Enabled(), false, "idempotency of "+strings.Join(p.Idempotency.Methods, ", "))
	if len(on) == 0 {
		return "nothing is refused"
	}
	return strings.Join(on, "; ")
}

// Anywhere is what requests to hosts of no service may reach through a proxy that only the program beside it uses: what
// that reaches by itself, written as outside.passThrough of a policy file is.
var Anywhere = []string{"*:*", "0.0.0.0/0:*", "::/0:*"}

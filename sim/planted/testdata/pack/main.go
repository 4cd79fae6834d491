// The pack runs a handful of small storms and prints a hash of every run: what a bug in a policy has to change.
package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/gob"
	"fmt"
	"os"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

//go:embed storms.yaml
var storms []byte

func main() {
	s, err := scenario.Parse("storms.yaml", storms)
	if err != nil {
		fail(err)
	}
	for i := range s.Variants {
		e, err := engine.New(s, &s.Variants[i])
		if err != nil {
			fail(err)
		}
		r, err := e.Run(1, false, nil)
		if err != nil {
			fail(err)
		}
		h := sha256.New()
		if err := gob.NewEncoder(h).Encode(r); err != nil {
			fail(err)
		}
		fmt.Printf("%s %x\n", s.Variants[i].Name, h.Sum(nil)[:8])
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

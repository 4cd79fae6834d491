package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestEveryModuleThatSomebodyImportsHasATag(t *testing.T) {
	r := &release{version: "v0.2.0"}
	const dirs = ". adapter/abategrpc adapter/abatekafka/embedded bench cmd deploy examples proxy tests tools " +
		"adapter/atest"
	for dir := range strings.FieldsSeq(dirs) {
		r.modules = append(r.modules, module{dir: dir})
	}
	const want = "v0.2.0 adapter/abategrpc/v0.2.0 adapter/abatekafka/embedded/v0.2.0 cmd/v0.2.0 proxy/v0.2.0"
	if got := strings.Join(r.tags(), " "); got != want {
		t.Errorf("tags are %q, want %q", got, want)
	}
}

func TestAReleaseIsRefusedWithoutAVersion(t *testing.T) {
	for _, args := range []string{"", "0.2.0", "v2.0.0", "v0.2", "v0.02.0", "v0.2.0 v0.3.0", "-h"} {
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(args), &out)
		if err == nil || !strings.Contains(err.Error(), "for example v0.2.0") || out.Len() > 0 {
			t.Errorf("%q: %v, %q", args, err, &out)
		}
	}
}

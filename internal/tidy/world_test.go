package tidy

import (
	"go/types"
	"slices"
	"strings"
)

// worldlyMethods are methods and functions of packages that only compute otherwise, as harmful has them for the text.
var worldlyMethods = map[string]string{
	"time.Time.Local":            "durations since a fixed origin",
	"time.Unix":                  "durations since a fixed origin",
	"time.UnixMilli":             "durations since a fixed origin",
	"time.UnixMicro":             "durations since a fixed origin",
	"context.WithCancel":         "a decision that a driver carries out",
	"context.WithCancelCause":    "a decision that a driver carries out",
	"sync.WaitGroup.Wait":        "a decision that a driver carries out",
	"sync.WaitGroup.Go":          "a decision that a driver carries out",
	"sync.Cond.Wait":             "a decision that a driver carries out",
	"reflect.Value.Call":         "a function that the types show",
	"reflect.Value.CallSlice":    "a function that the types show",
	"reflect.Value.Method":       "a function that the types show",
	"reflect.Value.MethodByName": "a function that the types show",
	"reflect.Value.Recv":         "a decision that a driver carries out",
	"reflect.Value.Send":         "a decision that a driver carries out",
	"reflect.Select":             "a decision that a driver carries out",
	"reflect.MakeFunc":           "a function that the types show",
}

// computing are functions of worldly packages, and packages, that only compute: a decision itself may not
// import them all, but calls those of ours that do.
var computing = []string{
	"hash/fnv", "hash/crc32", "regexp",
	"net/http.StatusText", "net/http.Header.Values", "google.golang.org/grpc/metadata.ValueFromIncomingContext",
}

// harmlessInterface reports whether an interface is of a package that only computes, such as hash.Hash, which
// embeds an io.Writer.
func harmlessInterface(t types.Type) bool {
	name := typeName(t)
	return name != nil && name.Pkg() != nil && name.Pkg().Path() == "hash"
}

// worldly says what somebody else's function or variable does to the world, and what to use instead; nothing
// if it only computes.
func worldly(obj types.Object) (act, use string) {
	if _, isOurs := folder(obj.Pkg().Path()); isOurs {
		return "", ""
	}
	if v, ok := obj.(*types.Var); ok && types.Identical(v.Type(), types.Universe.Lookup("error").Type()) {
		return "", "" // io.EOF only tells errors apart
	}
	pkg, name := obj.Pkg().Path(), nameOf(obj)
	first, _, _ := strings.Cut(strings.TrimPrefix(name, pkg+"."), ".")
	if use = worldlyMethods[name]; use == "" {
		use = impure(pkg, first)
	}
	_, forErrors := errorsOf[pkg]
	computes := slices.Contains(harmless, pkg) || slices.Contains(computing, name) || slices.Contains(computing, pkg)
	if use == "" && !forErrors && !computes {
		use = "an argument; if it only computes, add it to computing in internal/tidy/world_test.go"
	}
	if use == "" && pkg == "io" {
		if _, isFunc := obj.(*types.Func); isFunc {
			use = "bytes that the caller has read"
		}
	}
	if use == "" && strings.HasPrefix(name, "fmt.Fprint") {
		use = "a value that the caller writes"
	}
	if use == "" {
		return "", ""
	}
	return name, use
}

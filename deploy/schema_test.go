package deploy_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// apiType is what Kubernetes publishes of a type in its OpenAPI document, read where that document comes from: the
// comments and tags in types.go.
type apiType struct {
	required map[string]bool // fields of a struct, by their Go names
	words    []string        // values of an enumeration
}

// apiSource reads the source of the API types, a package at a time.
type apiSource struct {
	t        *testing.T
	packages map[string]map[string]*apiType
}

// of returns what the source says of a named type.
func (s *apiSource) of(t reflect.Type) *apiType {
	types := s.packages[t.PkgPath()]
	if types == nil {
		types = s.load(t.PkgPath())
		s.packages[t.PkgPath()] = types
	}
	if types[t.Name()] == nil {
		s.t.Fatalf("types.go of %s has no %s", t.PkgPath(), t.Name())
	}
	return types[t.Name()]
}

func (s *apiSource) load(path string) map[string]*apiType {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		s.t.Fatalf("go list %s: %v", path, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "types.go"), nil,
		parser.ParseComments)
	if err != nil {
		s.t.Fatal(err)
	}
	types, enums, values := map[string]*apiType{}, map[string]bool{}, map[string][]string{}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				types[spec.Name.Name] = &apiType{required: requiredFields(spec.Type)}
				enums[spec.Name.Name] = marked(group.Doc, "+enum") || marked(spec.Doc, "+enum")
			case *ast.ValueSpec:
				addValues(values, spec)
			}
		}
	}
	for name, typ := range types {
		if enums[name] {
			typ.words = values[name]
		}
	}
	return types
}

// addValues notes the constants of named string types.
func addValues(values map[string][]string, spec *ast.ValueSpec) {
	typ, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, v := range spec.Values {
		if literal, ok := v.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			word, _ := strconv.Unquote(literal.Value)
			values[typ.Name] = append(values[typ.Name], word)
		}
	}
}

// requiredFields follows the rule of the generator that makes the OpenAPI document: a marker decides, and where there
// is none, a field that may be omitted is optional.
func requiredFields(typ ast.Expr) map[string]bool {
	body, ok := typ.(*ast.StructType)
	if !ok {
		return nil
	}
	required := map[string]bool{}
	for _, field := range body.Fields.List {
		for _, name := range field.Names {
			omitted := field.Tag != nil && strings.Contains(field.Tag.Value, ",omitempty")
			required[name.Name] = marked(field.Doc, "+required") || !marked(field.Doc, "+optional") && !omitted
		}
	}
	return required
}

// marked reports whether a comment has a line with the marker.
func marked(doc *ast.CommentGroup, marker string) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.TrimSpace(strings.TrimPrefix(c.Text, "//")) == marker
	})
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// check compares a value of a YAML file with its type: required fields are there, words are among those allowed.
func (s *apiSource) check(p *problems, where string, value any, typ reflect.Type) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if reflect.PointerTo(typ).Implements(unmarshaler) { // strict decoding has checked it
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if typ.Kind() == reflect.Struct {
			s.checkStruct(p, where, value, typ)
			return
		}
		for key, v := range value {
			s.check(p, where+"."+key, v, typ.Elem())
		}
	case []any:
		for i, v := range value {
			s.check(p, fmt.Sprintf("%s[%d]", where, i), v, typ.Elem())
		}
	case string:
		if typ.Kind() == reflect.String && typ.PkgPath() != "" {
			words := s.of(typ).words
			p.unless(len(words) == 0 || slices.Contains(words, value), where, "%q is none of %q", value, words)
		}
	}
}

func (s *apiSource) checkStruct(p *problems, where string, value map[string]any, typ reflect.Type) {
	required := s.of(typ).required
	for i := range typ.NumField() {
		field := typ.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && key == "" {
			s.check(p, where, value, field.Type)
			continue
		}
		v, given := value[key]
		p.unless(given && v != nil || !required[field.Name], where, "required field %s is missing", key)
		if given {
			s.check(p, where+"."+key, v, field.Type)
		}
	}
}

func TestRequiredFieldsAreThereAndWordsAreAllowed(t *testing.T) {
	source := &apiSource{t: t, packages: map[string]map[string]*apiType{}}
	holds(t, func(b *bundle) (p problems) {
		for _, o := range b.objects {
			source.check(&p, o.where, o.tree, reflect.TypeOf(o.typed))
		}
		return p
	},
		edit{"gateway.yaml", "whenUnsatisfiable: ScheduleAnyway", "minDomains: 1",
			"Deployment abate-gateway.spec.template.spec.topologySpreadConstraints[0]: required field whenUnsatisfiable is " +
				"missing"},
		edit{"gateway.yaml", "whenUnsatisfiable: ScheduleAnyway", "whenUnsatisfiable: Ignore",
			`"Ignore" is none of ["DoNotSchedule" "ScheduleAnyway"]`},
		edit{"gateway.yaml", "name: http, port: 80, targetPort: http", "name: http, targetPort: http",
			"Service abate-gateway.spec.ports[0]: required field port is missing"},
		edit{"gateway.yaml", "{name: http, port: 80, targetPort: http}",
			"{name: http, port: 80, targetPort: http, protocol: tcp}", `"tcp" is none of`},
		edit{"gateway.yaml", "unhealthyPodEvictionPolicy: AlwaysAllow", "unhealthyPodEvictionPolicy: Always",
			`"Always" is none of`},
		edit{"gateway.yaml", "    rollingUpdate: {", "    type: Rolling\n    rollingUpdate: {", `"Rolling" is none of`},
		edit{"gateway.yaml", "  selector:\n    matchLabels: {app.kubernetes.io/name: abate-gateway}\n  strategy",
			"  strategy", "Deployment abate-gateway.spec: required field selector is missing"},
		edit{"gateway.yaml", "policyTypes: [Ingress]", "policyTypes: [ingress]", `"ingress" is none of ["Ingress" "Egress"]`},
		edit{"sidecar.yaml", "seccompProfile: {type: RuntimeDefault}", "seccompProfile: {type: Default}",
			`"Default" is none of`},
		edit{"sidecar.yaml", "httpGet: {path: /readyz, port: admin}", "httpGet: {path: /readyz}",
			"startupProbe.httpGet: required field port is missing"},
		edit{"sidecar.yaml", "httpGet: {path: /readyz, port: admin}", "httpGet: {path: /readyz, port: admin, scheme: http}",
			`"http" is none of ["HTTP" "HTTPS"]`},
		edit{"sidecar.yaml", "FallbackToLogsOnError", "Logs", `"Logs" is none of`},
		edit{"sidecar.yaml", "{name: policy, mountPath: /etc/abate, readOnly: true}", "{name: policy, readOnly: true}",
			"required field mountPath is missing"},
		edit{"sidecar.yaml", "      containers:\n        - name: checkout # yours\n          image",
			"      containers:\n        - image", "containers[0]: required field name is missing"},
		edit{"sidecar.yaml", "resourceFieldRef: {resource: requests.memory}", "resourceFieldRef: {containerName: abate}",
			"required field resource is missing"},
	)
}

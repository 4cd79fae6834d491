package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// bundle is one file of manifests.
type bundle struct {
	file    string
	objects []object
}

// object is one document of a file.
type object struct {
	where string // file, kind and name, for messages
	text  []byte
	tree  map[string]any
	typed runtime.Object
	meta  metav1.Object
}

// decoder knows the kinds that the manifests use, and no key that they do not have.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, admissionv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// parse decodes every document of a file. The error has all that is wrong, with the file and the document.
func parse(file string, text []byte) (*bundle, error) {
	b := &bundle{file: file}
	var errs []error
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return b, errors.Join(errs...)
		}
		o := object{where: fmt.Sprintf("%s: document %d", file, n), text: document}
		if err == nil {
			err = o.decode(file)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.where, err))
		}
		b.objects = append(b.objects, o)
	}
}

func (o *object) decode(file string) error {
	if err := yaml.UnmarshalStrict(o.text, &o.tree); err != nil {
		return err
	}
	if meta, ok := o.tree["metadata"].(map[string]any); ok {
		o.where = fmt.Sprintf("%s: %v %v", file, o.tree["kind"], meta["name"])
	}
	typed, _, err := decoder.Decode(o.text, nil, nil)
	if err != nil {
		return err
	}
	o.typed, o.meta = typed, typed.(metav1.Object)
	return nil
}

// all gives the objects of one kind, with the words that name them.
func all[T runtime.Object](b *bundle) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, o := range b.objects {
			if typed, ok := o.typed.(T); ok && !yield(o.where, typed) {
				return
			}
		}
	}
}

// problems collects what a rule has to say.
type problems []string

func (p *problems) add(where, format string, args ...any) {
	*p = append(*p, where+": "+fmt.Sprintf(format, args...))
}

// unless adds the problem if ok is false.
func (p *problems) unless(ok bool, where, format string, args ...any) {
	if !ok {
		p.add(where, format, args...)
	}
}

// edit changes one word of a manifest into a mistake, and says what a rule must answer.
type edit struct{ file, old, new, want string }

// holds runs a rule on every manifest as it is, on what the Helm chart makes, and on a copy with each of the edits,
// which the rule must notice.
func holds(t *testing.T, rule func(*bundle) problems, edits ...edit) {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		b, err := parse(filepath.Base(file), read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range rule(b) {
			t.Error(problem)
		}
	}
	for _, b := range ofChart(t) {
		for _, problem := range rule(b) {
			t.Error("helm:", problem)
		}
	}
	for _, e := range edits {
		text := string(read(t, "kubernetes/"+e.file))
		if !strings.Contains(text, e.old) {
			t.Errorf("%s has no %q to change", e.file, e.old)
			continue
		}
		b, err := parse(e.file, []byte(strings.Replace(text, e.old, e.new, 1)))
		if err != nil {
			t.Errorf("%q changed into %q does not decode: %v", e.old, e.new, err)
			continue
		}
		if said := strings.Join(rule(b), "\n"); !strings.Contains(said, e.want) {
			t.Errorf("%s, %q changed into %q: want %q, the rule says %q", e.file, e.old, e.new, e.want, said)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEveryDocumentDecodesStrictly(t *testing.T) {
	kinds := map[string][]string{
		"sidecar.yaml": {"ConfigMap", "Deployment", "NetworkPolicy"},
		"gateway.yaml": {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"},
	}
	for file, want := range kinds {
		b, err := parse(file, read(t, "kubernetes/"+file))
		if err != nil {
			t.Error(err)
		}
		var got []string
		for _, o := range b.objects {
			got = append(got, fmt.Sprint(o.tree["kind"]))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v, want %v", file, got, want)
		}
	}
}

func TestMistakeIsNamedWithItsFileAndDocument(t *testing.T) {
	gateway := string(read(t, "kubernetes/gateway.yaml"))
	for _, x := range []struct{ old, new, want string }{
		{"periodSeconds: 1\n", "periodSecond: 1\n",
			`gateway.yaml: Deployment abate-gateway: strict decoding error: unknown field ` +
				`"spec.template.spec.containers[0].startupProbe.periodSecond"`},
		{"  replicas: 3", "  replicas: three", "gateway.yaml: Deployment abate-gateway: "},
		{"memory: 256Mi", "memory: 256MB", "gateway.yaml: Deployment abate-gateway: "},
		{"  maxUnavailable: 1\n", "  maxUnavailable: 1\n  maxUnavailable: 1\n", "gateway.yaml: document 4: "},
		{"kind: Service\n", "kind: Servise\n", "gateway.yaml: Servise abate-gateway: no kind"},
		{"apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n",
			"gateway.yaml: PodDisruptionBudget abate-gateway: no kind"},
		{"\ndata:\n", "\ndat:\n", `gateway.yaml: ConfigMap abate-gateway: strict decoding error: unknown field "dat"`},
	} {
		if !strings.Contains(gateway, x.old) {
			t.Errorf("no %q to change", x.old)
		}
		_, err := parse("gateway.yaml", []byte(strings.Replace(gateway, x.old, x.new, 1)))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q changed into %q: want an error with %q, got %v", x.old, x.new, x.want, err)
		}
	}
}

package inject_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/inject"
)

const template = `{"policy": "abate-policy", "container": {"name": "abate", "restartPolicy": "Always"},
	"env": [{"name": "http_proxy", "value": "http://127.0.0.1:15001"}, {"name": "no_proxy", "value": "localhost"}],
	"annotations": {"prometheus.io/scrape": "true"}}`

func read(t *testing.T) *inject.Template {
	t.Helper()
	made, err := inject.ParseTemplate([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const (
	first   = `{"op":"add","path":"/spec/initContainers","value":[{"name":"abate","restartPolicy":"Always"}]}`
	before  = `{"op":"add","path":"/spec/initContainers/0","value":{"name":"abate","restartPolicy":"Always"}}`
	volumes = `{"op":"add","path":"/spec/volumes","value":[{"configMap":{"name":"abate-policy"},"name":"abate-policy"}]}`
	another = `{"op":"add","path":"/spec/volumes/-","value":{"configMap":{"name":"mine"},"name":"abate-policy"}}`
	env     = `{"op":"add","path":"/spec/containers/0/env",` +
		`"value":[{"name":"http_proxy","value":"http://127.0.0.1:15001"}]}`
	no       = `{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"no_proxy","value":"localhost"}}`
	scraped  = `{"op":"add","path":"/metadata/annotations","value":{"prometheus.io/scrape":"true"}}`
	annotate = `{"op":"add","path":"/metadata/annotations/prometheus.io~1scrape","value":"true"}`
)

func TestAPodGetsTheSidecarItsVolumeAndItsVariables(t *testing.T) {
	for pod, want := range map[string]string{
		`{"spec": {"containers": [{"name": "app"}]}}`: join(first, volumes, env, no, scraped),
		`{"metadata": {"annotations": {"abate/policy": "mine"}}, "spec": {"initContainers": [{"name": "migrate"}],
			"containers": [{"name": "app", "env": [{"name": "HTTP_PROXY"}]}], "volumes": [{"name": "data"}]}}`: //
		join(before, another, no, annotate),
		`{"metadata": {"annotations": {"prometheus.io/scrape": "false"}}, "spec": {"containers": [{"name": "app", "env": [
			{"name": "http_proxy"}, {"name": "no_proxy"}]}]}}`: join(first, volumes),
		`{"spec": {"containers": [{"name": "app"}], "initContainers": [{"name": "abate"}]}}`: "null", // again
	} {
		operations, warning := read(t).Patch([]byte(pod))
		got, err := json.Marshal(operations)
		if err != nil || warning != "" || string(got) != want {
			t.Errorf("%s:\n got %s (%q, %v)\nwant %s", pod, got, warning, err, want)
		}
	}
}

func join(operations ...string) string { return "[" + strings.Join(operations, ",") + "]" }

func TestAPodThatCannotHaveItStartsWithoutAndSaysWhy(t *testing.T) {
	for pod, want := range map[string]string{
		`{"spec": {"containers": [{"name": "abate"}]}}`:                                      "a container called abate",
		`{"spec": {"hostNetwork": true, "containers": [{"name": "app"}]}}`:                   "hostNetwork: false",
		`{"spec": {"volumes": [{"name": "abate-policy"}], "containers": [{"name": "app"}]}}`: "a volume called",
		`{"spec": {}}`: "no containers",
		`[]`:           "cannot be read",
	} {
		operations, warning := read(t).Patch([]byte(pod))
		if len(operations) > 0 || !strings.Contains(warning, want) {
			t.Errorf("%s: %v, warning %q, want one with %q", pod, operations, warning, want)
		}
	}
}

func TestWhatIsWrongWithATemplateIsSaidAtOnce(t *testing.T) {
	for text, want := range map[string]string{
		`{`:               "is no template in JSON",
		`{"polcy": "x"}`:  `unknown field "polcy"`,
		`{"policy": "x"}`: "has no container",
		`{"container": {}}`: `container has no name: write for example name: abate; ` +
			`container has restartPolicy "": write Always`,
	} {
		if _, err := inject.ParseTemplate([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzPatch holds that no pod ends the webhook, and that what is done to one can be written.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"spec": {"containers": [{"name": "app", "env": [{"name": "A", "value": "b"}]}]}}`))
	f.Add([]byte(`{"metadata": {"annotations": {"abate/policy": "~/"}}, "spec": {"containers": [{}], "volumes": [{}]}}`))
	made, err := inject.ParseTemplate([]byte(template))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, pod []byte) {
		operations, warning := made.Patch(pod)
		if len(operations) > 0 && warning != "" {
			t.Error("a pod is changed, and said not to be")
		}
		if _, err := json.Marshal(operations); err != nil {
			t.Error(err)
		}
	})
}

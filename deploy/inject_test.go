package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admission "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// injector is the webhook of the chart, running.
type injector struct {
	client *http.Client
	url    string
}

var injecting = regexp.MustCompile(`https://127\.0\.0\.1:\d+/inject`)

// startInjector runs the webhook with the certificate and the template that the chart has made.
func startInjector(t *testing.T, binary string, b *bundle) *injector {
	t.Helper()
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authorities, secrets := x509.NewCertPool(), map[string][]byte{}
	for _, s := range all[*corev1.Secret](b) {
		secrets = s.Data
	}
	if !authorities.AppendCertsFromPEM(secrets["ca.crt"]) {
		t.Fatal("the Secret has no authority in ca.crt")
	}
	c, _ := configMap(b, "calm-injector")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	cmd := exec.CommandContext(ctx, binary, "inject", "--listen", "127.0.0.1:0",
		"--template", file("sidecar.json", []byte(c.Data["sidecar.json"])),
		"--tls-cert", file("tls.crt", secrets["tls.crt"]), "--tls-key", file("tls.key", secrets["tls.key"]))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url := injecting.FindString(line)
	if err != nil || url == "" {
		cancel()
		t.Fatalf("%q, %v: %s", line, err, said.String())
	}
	t.Cleanup(func() {
		defer cancel()
		err := cmd.Process.Signal(syscall.SIGTERM)
		if err = errors.Join(err, cmd.Wait()); err != nil {
			t.Errorf("told to end: %v: %s", err, said.String())
		}
	})
	trust := &tls.Config{RootCAs: authorities, ServerName: "calm-injector.shop.svc"} // as the API server asks
	return &injector{&http.Client{Transport: &http.Transport{TLSClientConfig: trust, Proxy: nil}}, url}
}

// create is what the API server does with a pod that is created.
func (i *injector) create(t *testing.T, pod *corev1.Pod) (*corev1.Pod, []string) {
	t.Helper()
	object, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(admission.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admission.AdmissionRequest{UID: "7", Operation: admission.Create,
			Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Object: runtime.RawExtension{Raw: object}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.url, bytes.NewReader(asked))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := i.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var says admission.AdmissionReview
	if err = errors.Join(err, json.Unmarshal(text, &says)); err != nil || says.Response == nil {
		t.Fatalf("%s: %s, %v", answer.Status, text, err)
	}
	r := says.Response
	if !r.Allowed || r.UID != "7" || (r.PatchType == nil) != (len(r.Patch) == 0) {
		t.Fatalf("%s", text)
	}
	if r.PatchType == nil {
		return pod, r.Warnings
	}
	patch, err := jsonpatch.DecodePatch(r.Patch)
	if err == nil {
		object, err = patch.Apply(object)
	}
	created := new(corev1.Pod)
	err = errors.Join(err, json.Unmarshal(object, created))
	if err != nil || *r.PatchType != admission.PatchTypeJSONPatch {
		t.Fatalf("%s: %v", r.Patch, err)
	}
	return created, r.Warnings
}

// injects holds that the webhook makes of a pod what the rules of the manifests were asked about.
func injects(t *testing.T, binary string) {
	bundles, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	webhook := startInjector(t, binary, bundles["injector.yaml"])
	plain, err := parse("sidecar.yaml", read(t, "kubernetes/sidecar.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all[*appsv1.Deployment](plain) {
		template := &d.Spec.Template
		bare(template)
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		created, warnings := webhook.create(t, pod.DeepCopy())
		put(template, templateOf(t, bundles["injector.yaml"]))
		want := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		if len(warnings) > 0 || !equality.Semantic.DeepEqual(created, want) {
			got, _ := json.MarshalIndent(created, "", " ")
			t.Errorf("warnings %q; the pod has become\n%s", warnings, got)
		}
		if again, warnings := webhook.create(t, created); len(warnings) > 0 || !equality.Semantic.DeepEqual(again, created) {
			t.Errorf("asked again, the webhook changes the pod again, or warns: %q", warnings)
		}
		pod.Spec.HostNetwork = true
		if same, warnings := webhook.create(t, pod); len(warnings) != 1 || len(same.Spec.InitContainers) > 0 {
			t.Errorf("a pod on the node's network: warnings %q", warnings)
		}
	}
}

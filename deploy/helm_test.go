package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// render makes the manifests that "helm install calm deploy/helm/abate --namespace shop -f values" would, by file.
func render(values string) (map[string]string, error) {
	c, err := loader.Load("helm/abate")
	if err != nil {
		return nil, err
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "calm", Namespace: "shop", IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, release, chartutil.DefaultCapabilities.Copy()) // checks the schema, too
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	maps.DeleteFunc(files, func(name, text string) bool {
		return !strings.HasSuffix(name, ".yaml") || strings.TrimSpace(text) == ""
	})
	return files, err
}

// parsed is render's manifests, one bundle for each file.
func parsed(values string) (map[string]*bundle, error) {
	files, err := render(values)
	if err != nil {
		return nil, err
	}
	bundles := map[string]*bundle{}
	for name, text := range files {
		file := strings.TrimPrefix(name, "abate/templates/")
		if bundles[file], err = parse(file, []byte(text)); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, text)
		}
	}
	return bundles, nil
}

// installed is the chart with its defaults.
var installed = sync.OnceValues(func() (map[string]*bundle, error) { return parsed("") })

// ofChart is what the rules of the manifests hold for: the gateway, and a Deployment into whose pods the webhook has
// put the sidecar.
func ofChart(t *testing.T) []*bundle {
	t.Helper()
	bundles, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return []*bundle{bundles["gateway.yaml"], withSidecar(t, bundles["injector.yaml"])}
}

// template is what the webhook is given: see cmd/internal/inject.
type template struct {
	Policy      string            `json:"policy"`
	Container   corev1.Container  `json:"container"`
	Env         []corev1.EnvVar   `json:"env"`
	Annotations map[string]string `json:"annotations"`
}

// templateOf reads the template of an injector.
func templateOf(t *testing.T, injector *bundle) template {
	t.Helper()
	c, _ := configMap(injector, "calm-injector")
	var given template
	if err := yaml.UnmarshalStrict([]byte(c.Data["sidecar.json"]), &given); err != nil {
		t.Fatal(err)
	}
	return given
}

// withSidecar is sidecar.yaml, its Deployment as it would be if the webhook had put Abate in.
func withSidecar(t *testing.T, injector *bundle) *bundle {
	t.Helper()
	b, err := parse("sidecar.yaml", read(t, "kubernetes/sidecar.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	given := templateOf(t, injector)
	for i := range b.objects {
		switch o := b.objects[i].typed.(type) {
		case *corev1.ConfigMap:
			o.Name = given.Policy
			b.objects[i].text = []byte(strings.ReplaceAll(string(b.objects[i].text), "checkout-abate", given.Policy))
		case *appsv1.Deployment:
			pod := &o.Spec.Template
			bare(pod)
			put(pod, given)
			b.objects[i] = again(t, b.file, o)
		}
	}
	return b
}

// bare takes Abate out of a pod.
func bare(pod *corev1.PodTemplateSpec) {
	pod.Annotations, pod.Spec.InitContainers, pod.Spec.Volumes = nil, nil, nil
	pod.Labels["abate/inject"] = "true"
	c := &pod.Spec.Containers[0]
	c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return strings.HasSuffix(v.Name, "_proxy") })
}

// put puts it in.
func put(pod *corev1.PodTemplateSpec, given template) {
	pod.Annotations = given.Annotations
	pod.Spec.InitContainers = []corev1.Container{given.Container}
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: given.Policy}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "abate-policy", VolumeSource: source}}
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, given.Env...)
}

// again is an object as it comes out of its own text.
func again(t *testing.T, file string, o any) object {
	t.Helper()
	text, err := json.Marshal(o)
	fresh := object{where: file, text: text}
	if err == nil {
		err = fresh.decode(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

func TestTheChartHasWhatItsValuesAskFor(t *testing.T) {
	const gateway = "ConfigMap Deployment Service PodDisruptionBudget NetworkPolicy"
	const injector = "ConfigMap Deployment Service PodDisruptionBudget MutatingWebhookConfiguration"
	for values, want := range map[string]string{
		"":                          gateway + "; Secret " + injector,
		"gateway: {enabled: false}": "Secret " + injector,
		"injector: {enabled: false}\nnetworkPolicy: {enabled: false}":   strings.TrimSuffix(gateway, " NetworkPolicy"),
		"injector: {secretName: mine, caBundle: QQ==}":                  gateway + "; " + injector,
		"gateway: {enabled: false}\nmonitoring: {serviceMonitor: true}": "Secret " + injector,
	} {
		bundles, err := parsed(values)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		var files []string
		for _, file := range slices.Sorted(maps.Keys(bundles)) {
			var kinds []string
			for _, o := range bundles[file].objects {
				kinds = append(kinds, fmt.Sprint(o.tree["kind"]))
			}
			files = append(files, strings.Join(kinds, " "))
		}
		if got := strings.Join(files, "; "); got != want {
			t.Errorf("%q makes %s, want %s", values, got, want)
		}
	}
}

// TestTheServiceMonitorFindsTheAdminPortOfTheGateway by the labels and the port of a Service, which has the gateway's
// pods; and no PodMonitor finds them a second time. What it has is read as a tree, as of PodMonitors.
func TestTheServiceMonitorFindsTheAdminPortOfTheGateway(t *testing.T) {
	files, err := render("monitoring: {podMonitor: true, serviceMonitor: true, annotations: false, " +
		"labels: {release: prom}}")
	if err != nil {
		t.Fatal(err)
	}
	service, monitor, _ := strings.Cut(files["abate/templates/servicemonitor.yaml"], "\n---\n")
	var s corev1.Service
	if err := yaml.UnmarshalStrict([]byte(service), &s); err != nil {
		t.Fatalf("%v in\n%s", err, service)
	}
	var m struct {
		APIVersion, Kind string
		Metadata         metav1.ObjectMeta
		Spec             struct {
			Selector  metav1.LabelSelector
			Endpoints []struct{ Port, Path string }
		}
	}
	if err := yaml.UnmarshalStrict([]byte(monitor), &m); err != nil {
		t.Fatalf("%v in\n%s", err, monitor)
	}
	b, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	var p problems
	gateway := workloads(b["gateway.yaml"], &p)[0]
	if !selects(metav1.SetAsLabelSelector(s.Spec.Selector), gateway.deploy.Spec.Template.Labels) {
		t.Errorf("the Service has other pods: %v", s.Spec.Selector)
	}
	if s.Spec.ClusterIP != "None" || named(s.Spec.Ports[0].TargetPort, *gateway.abate) != port(gateway.flags.admin) {
		t.Errorf("the Service has not the admin port of each pod: %+v", s.Spec)
	}
	if m.APIVersion != "monitoring.coreos.com/v1" || m.Kind != "ServiceMonitor" ||
		m.Metadata.Labels["release"] != "prom" || !selects(&m.Spec.Selector, s.Labels) || len(m.Spec.Endpoints) != 1 ||
		m.Spec.Endpoints[0].Port != s.Spec.Ports[0].Name || m.Spec.Endpoints[0].Path != "/metrics" {
		t.Errorf("%+v does not find %+v", m, s.ObjectMeta)
	}
	for where, other := range all[*corev1.Service](b["gateway.yaml"]) {
		if selects(&m.Spec.Selector, other.Labels) {
			t.Errorf("it finds %s, too", where)
		}
	}
	if pods := files["abate/templates/podmonitor.yaml"]; strings.Contains(pods, "calm-gateway") ||
		!strings.Contains(pods, "abate/inject") {
		t.Errorf("a PodMonitor finds the gateway a second time, or no sidecar:\n%s", pods)
	}
}

// The PodMonitor's types need a newer Kubernetes than ours, so it is read as a tree.
func TestPodMonitorsSelectThePodsOfGatewayAndSidecars(t *testing.T) {
	files, err := render("monitoring: {podMonitor: true, annotations: false, labels: {release: prometheus}}")
	if err != nil {
		t.Fatal(err)
	}
	text := files["abate/templates/podmonitor.yaml"]
	for _, want := range []string{
		"kind: PodMonitor", "app.kubernetes.io/name: calm-gateway", "abate/inject: \"true\"", "port: admin",
		"release: prometheus", "namespaceSelector: {any: true}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var tree map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &tree); err != nil {
			t.Errorf("%v in\n%s", err, document)
		}
	}
	if strings.Contains(files["abate/templates/gateway.yaml"]+files["abate/templates/injector.yaml"], "prometheus.io/") {
		t.Error("pods are found by annotations, too, so that they are scraped twice")
	}
}

// A label must not take from a program what it reached before: hosts that nobody has written into the policy.
func TestLabelTakesNoHostAwayFromAPodUnlessTheValuesSaySo(t *testing.T) {
	for values, want := range map[string]string{"": "pass", "sidecar: {strangers: refuse}": "refuse"} {
		bundles, err := parsed(values)
		if err != nil {
			t.Fatal(err)
		}
		args := templateOf(t, bundles["injector.yaml"]).Container.Args
		i := slices.Index(args, "--strangers")
		if i < 0 || args[i+1] != want || !slices.Contains(args, "127.0.0.1:15001") {
			t.Errorf("%q: %v, want --strangers %s, which the proxy takes on loopback only", values, args, want)
		}
		for _, c := range all[*corev1.ConfigMap](bundles["gateway.yaml"]) {
			if strings.Contains(fmt.Sprint(c.Data), "strangers") {
				t.Error("a gateway would let everybody through")
			}
		}
	}
}

func TestTheBudgetOfAGatewayIsSharedByItsReplicas(t *testing.T) {
	for values, want := range map[string]string{
		"gateway: {replicas: 7}": "clients: 7",
		"gateway: {replicas: 7, policy: {defaults: {retryBudget: {clients: 2}}}}": "clients: 2",
	} {
		bundles, err := parsed(values)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := configMap(bundles["gateway.yaml"], "calm-gateway")
		if !strings.Contains(c.Data["policy.yaml"], want) {
			t.Errorf("%s: no %s in\n%s", values, want, c.Data["policy.yaml"])
		}
	}
}

func TestWrongValuesAreNamed(t *testing.T) {
	for values, want := range map[string]string{
		"gateway: {replica: 3}":             "replica",
		"gateway: {replicas: 0}":            "gateway.replicas",
		"injector: {failurePolicy: ignore}": "injector.failurePolicy",
		"sidecar: {port: 70000}":            "sidecar.port",
		"sidecar: {strangers: perhaps}":     "sidecar.strangers",
		"gatway: {}":                        "gatway",
	} {
		if _, err := render(values); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "/", "."), want) {
			t.Errorf("%s: the error is %v, want one about %s", values, err, want)
		}
	}
}

package deploy_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// selects reports whether a selector names the pods. An empty one would name every pod of the namespace.
func selects(s *metav1.LabelSelector, pods map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(pods))
}

func TestSelectorsMatchThePods(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			pods := w.deploy.Spec.Template.Labels
			p.unless(selects(w.deploy.Spec.Selector, pods), w.where, "selector does not match the pods")
			for _, c := range w.pod.TopologySpreadConstraints {
				p.unless(selects(c.LabelSelector, pods), w.where, "topologySpreadConstraints: %s does not match the pods",
					c.TopologyKey)
			}
			for where, s := range all[*corev1.Service](b) {
				p.unless(selects(metav1.SetAsLabelSelector(s.Spec.Selector), pods), where, "selector does not match the pods")
			}
			for where, d := range all[*policyv1.PodDisruptionBudget](b) {
				p.unless(selects(d.Spec.Selector, pods), where, "selector does not match the pods")
			}
			for where, n := range all[*networkingv1.NetworkPolicy](b) {
				p.unless(selects(&n.Spec.PodSelector, pods), where, "podSelector does not match the pods")
			}
		}
		return p
	},
		edit{"gateway.yaml", "      labels: {app.kubernetes.io/name: abate-gateway}\n      annotations",
			"      labels: {app.kubernetes.io/name: gateway}\n      annotations", "Deployment abate-gateway: selector does not"},
		edit{"gateway.yaml", "          labelSelector:\n            matchLabels: {app.kubernetes.io/name: abate-gateway}",
			"          labelSelector:\n            matchLabels: {app.kubernetes.io/name: abate}",
			"kubernetes.io/hostname does not match"},
		edit{"gateway.yaml", "selector: {app.kubernetes.io/name: abate-gateway}", "selector: {app: abate-gateway}",
			"Service abate-gateway: selector"},
		edit{"gateway.yaml", "selector: {app.kubernetes.io/name: abate-gateway}", "selector: {}",
			"Service abate-gateway: selector"},
		edit{"gateway.yaml", "AlwaysAllow # a pod that fails anyway must not keep a node from being drained\n  selector:\n " +
			"   matchLabels: {app.kubernetes.io/name: abate-gateway}", "AlwaysAllow\n  selector: {}",
			"PodDisruptionBudget abate-gateway: selector"},
		edit{"gateway.yaml", "podSelector:\n    matchLabels: {app.kubernetes.io/name: abate-gateway}", "podSelector: {}",
			"NetworkPolicy abate-gateway: podSelector"},
		edit{"sidecar.yaml", "podSelector:\n    matchLabels: {app.kubernetes.io/name: checkout}",
			"podSelector:\n    matchLabels: {app.kubernetes.io/name: chekout}", "NetworkPolicy checkout: podSelector"},
	)
}

func TestPortsThatAreNamedExist(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			names, numbers := map[string]bool{}, map[int32]bool{}
			for _, c := range w.containers() {
				for _, port := range c.Ports {
					p.unless(!names[port.Name] && !numbers[port.ContainerPort], w.where, "port %s %d is there twice", port.Name,
						port.ContainerPort)
					names[port.Name], numbers[port.ContainerPort] = true, true
				}
			}
			p.unless(numbers[port(w.flags.admin)], w.where, "--admin %s is not among the ports", w.flags.admin)
			p.unless(numbers[port(w.flags.listen)] == w.flags.gateway, w.where,
				"--listen %s: a gateway's port is listed, a sidecar's is the pod's own", w.flags.listen)
			scraped := w.deploy.Spec.Template.Annotations
			p.unless(scraped["prometheus.io/scrape"] == "true" && scraped["prometheus.io/path"] == "/metrics" &&
				scraped["prometheus.io/port"] == strconv.Itoa(int(port(w.flags.admin))), w.where,
				"annotations do not lead Prometheus to /metrics of the admin port")
			for where, s := range all[*corev1.Service](b) {
				for _, sp := range s.Spec.Ports {
					n := named(sp.TargetPort, w.pod.Containers...)
					p.unless(n != 0, where, "targetPort %s is no port of the pods", sp.TargetPort.String())
					p.unless(n != port(w.flags.admin), where, "publishes the admin port")
					p.unless(n == 0 || n == port(w.flags.listen), where, "targetPort %s is not where the gateway listens",
						sp.TargetPort.String())
				}
			}
		}
		return p
	},
		edit{"gateway.yaml", "{name: admin, containerPort: 15000}", "{name: admin, containerPort: 8080}",
			"port admin 8080 is there twice"},
		edit{"sidecar.yaml", "{name: http, containerPort: 8080}", "{name: admin, containerPort: 8080}",
			"port admin 8080 is there twice"},
		edit{"gateway.yaml", `--admin, ":15000"`, `--admin, ":15001"`, "--admin :15001 is not among the ports"},
		edit{"gateway.yaml", `--listen, ":8080"`, `--listen, ":8081"`, "--listen :8081: a gateway's port is listed"},
		edit{"sidecar.yaml", `127.0.0.1:15001", --admin`, `127.0.0.1:8080", --admin`, "a sidecar's is the pod's own"},
		edit{"gateway.yaml", `prometheus.io/port: "15000"`, `prometheus.io/port: "8080"`, "annotations do not lead"},
		edit{"gateway.yaml", "targetPort: http}", "targetPort: web}", "targetPort web is no port"},
		edit{"gateway.yaml", "targetPort: http}", "targetPort: 8081}", "targetPort 8081 is no port"},
		edit{"gateway.yaml", "targetPort: http}", "targetPort: admin}", "publishes the admin port"},
	)
}

// admits reports whether a rule lets requests to a port in. A port given by its name counts as none: see sidecar.yaml.
func admits(rule networkingv1.NetworkPolicyIngressRule, number int32) bool {
	return len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
		udp := p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP
		return !udp && (p.Port == nil || p.Port.Type == intstr.Int && p.Port.IntVal == number ||
			p.EndPort != nil && p.Port.IntVal <= number && number <= *p.EndPort)
	})
}

// monitoringOnly reports whether a rule is for the monitoring namespace and nobody else.
func monitoringOnly(rule networkingv1.NetworkPolicyIngressRule) bool {
	return len(rule.From) > 0 && !slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
		return peer.NamespaceSelector == nil ||
			peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring"
	})
}

func TestAdminPortIsForMonitoringOnlyAndTheServiceForAll(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			var rules []networkingv1.NetworkPolicyIngressRule
			for where, n := range all[*networkingv1.NetworkPolicy](b) {
				p.unless(slices.Contains(n.Spec.PolicyTypes, networkingv1.PolicyTypeIngress), where, "policyTypes has no Ingress")
				rules = append(rules, n.Spec.Ingress...)
			}
			p.unless(len(rules) > 0, w.where, "no NetworkPolicy, so the admin port is open to the cluster")
			for _, c := range w.containers() {
				for _, declared := range c.Ports {
					open := slices.IndexFunc(rules, func(r networkingv1.NetworkPolicyIngressRule) bool {
						return admits(r, declared.ContainerPort)
					})
					p.unless(open >= 0, w.where, "no NetworkPolicy admits anybody to port %d", declared.ContainerPort)
				}
			}
			for _, r := range rules {
				p.unless(!admits(r, port(w.flags.admin)) ||
					monitoringOnly(r), w.where, "a NetworkPolicy admits others than monitoring to the admin port")
			}
		}
		return p
	},
		edit{"gateway.yaml", "{kubernetes.io/metadata.name: monitoring}", "{}", "admits others"},
		edit{"gateway.yaml", "{kubernetes.io/metadata.name: monitoring}", "{kubernetes.io/metadata.name: default}",
			"admits others"},
		edit{"gateway.yaml", "        - namespaceSelector:\n            matchLabels: {kubernetes.io/metadata.name: " +
			"monitoring}\n", "        - podSelector: {}\n", "admits others"},
		edit{"gateway.yaml", "ports: [{port: 8080}]", "ports: [{port: 8080}, {port: 15000}]", "admits others"},
		edit{"gateway.yaml", "ports: [{port: 8080}]", "ports: [{port: 8080, endPort: 20000}]", "admits others"},
		edit{"gateway.yaml", "ports: [{port: 8080}]", "ports: []", "admits others"},
		edit{"gateway.yaml", "ports: [{port: 8080}]", "ports: [{protocol: TCP}]", "admits others"},
		edit{"gateway.yaml", "      ports: [{port: 15000}]\n", "      ports: [{port: 15001}]\n",
			"admits anybody to port 15000"},
		edit{"sidecar.yaml", "      ports: [{port: 15000}]", "      ports: [{port: admin}]", "admits anybody to port 15000"},
		edit{"sidecar.yaml", "ports: [{port: 8080}]", "ports: [{port: 8080, protocol: UDP}]", "admits anybody to port 8080"},
		edit{"sidecar.yaml", "policyTypes: [Ingress]", "policyTypes: [Egress]", "policyTypes has no Ingress"},
	)
}

func TestNamesAreOnesThatKubernetesTakes(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		seen := map[string]bool{}
		for _, o := range b.objects {
			check := func(what, value string, valid func(string) []string) {
				for _, complaint := range valid(value) {
					p.add(o.where, "%s %q: %s", what, value, complaint)
				}
			}
			p.unless(!seen[o.where], o.where, "is there twice")
			seen[o.where] = true
			check("name", o.meta.GetName(), validation.IsDNS1123Subdomain)
			for key, value := range o.meta.GetLabels() {
				check("label", key, validation.IsQualifiedName)
				check("label value", value, validation.IsValidLabelValue)
			}
			switch typed := o.typed.(type) {
			case *corev1.Service:
				check("name", typed.Name, validation.IsDNS1035Label)
				for _, sp := range typed.Spec.Ports {
					p.unless(sp.Port > 0 && sp.Port <= 65535, o.where, "port %d", sp.Port)
				}
			case *corev1.ConfigMap:
				for key := range typed.Data {
					check("key", key, validation.IsConfigMapKey)
				}
			case *appsv1.Deployment:
				podNames(&p, o.where, typed.Spec.Template.Spec, check)
			}
		}
		return p
	},
		edit{"gateway.yaml", "  name: abate-gateway\n", "  name: abate_gateway\n", "lowercase RFC 1123 subdomain"},
		edit{"gateway.yaml", "kind: Service\nmetadata:\n  name: abate-gateway", "kind: Service\nmetadata:\n  name: 1-abate",
			"DNS-1035"},
		edit{"gateway.yaml", "labels: {app.kubernetes.io/name: ", "labels: {app/kubernetes/io: ",
			"label \"app/kubernetes/io\""},
		edit{"gateway.yaml", "labels: {app.kubernetes.io/name: abate-gateway}",
			"labels: {app.kubernetes.io/name: abate gateway}", "label value \"abate gateway\""},
		edit{"gateway.yaml", "port: 80,", "port: 80000,", "port 80000"},
		edit{"gateway.yaml", "containerPort: 8080", "containerPort: 80800", "port http 80800"},
		edit{"gateway.yaml", "name: http, containerPort", "name: plain-http-requests, containerPort", "port name"},
		edit{"gateway.yaml", "  policy.yaml: |", "  \"policy yaml\": |", "key \"policy yaml\""},
		edit{"sidecar.yaml", "- name: checkout # yours", "- name: abate # yours", "container abate is there twice"},
		edit{"sidecar.yaml", "- name: GOMEMLIMIT", "- name: GOMAXPROCS", "variable GOMAXPROCS is there twice"},
		edit{"sidecar.yaml", "- {name: http_proxy,", "- {name: http=proxy,", "variable \"http=proxy\""},
		edit{"gateway.yaml", "kind: ConfigMap\nmetadata:\n  name: abate-gateway\n",
			"kind: ConfigMap\nmetadata:\n  name: ABATE\n", "name \"ABATE\""},
	)
}

func podNames(p *problems, where string, pod corev1.PodSpec,
	check func(what, value string, valid func(string) []string)) {
	containers := map[string]bool{}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		check("container", c.Name, validation.IsDNS1123Label)
		p.unless(!containers[c.Name], where, "container %s is there twice", c.Name)
		p.unless(c.Image != "", where, "container %s has no image", c.Name)
		containers[c.Name] = true
		for _, port := range c.Ports {
			check("port name", port.Name, validation.IsValidPortName)
			p.unless(port.ContainerPort > 0 && port.ContainerPort <= 65535, where, "port %s %d", port.Name, port.ContainerPort)
		}
		variables := map[string]bool{}
		for _, v := range c.Env {
			check("variable", v.Name, validation.IsEnvVarName)
			p.unless(!variables[v.Name], where, "variable %s is there twice", v.Name)
			variables[v.Name] = true
		}
	}
	for _, v := range pod.Volumes {
		check("volume", v.Name, validation.IsDNS1123Label)
	}
}

func TestGatewayOutlivesOneNodeAndEveryRollout(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			if !w.flags.gateway {
				continue
			}
			replicas := *first(w.deploy.Spec.Replicas, new(int32))
			p.unless(replicas >= 2, w.where, "%d replicas do not outlive one node", replicas)
			rolling := w.deploy.Spec.Strategy.RollingUpdate
			p.unless(rolling != nil && rolling.MaxUnavailable != nil && rolling.MaxUnavailable.IntValue() == 0 &&
				rolling.MaxSurge.IntValue() > 0,
				w.where, "a rollout takes pods away before there are others")
			p.unless(slices.ContainsFunc(w.pod.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
				return c.TopologyKey == corev1.LabelHostname && c.MaxSkew == 1 &&
					slices.Contains(c.MatchLabelKeys, appsv1.DefaultDeploymentUniqueLabelKey)
			}), w.where, "the pods of a revision are not spread over nodes")
			budgets := 0
			for where, d := range all[*policyv1.PodDisruptionBudget](b) {
				budgets++
				away := d.Spec.MaxUnavailable
				p.unless(away != nil && d.Spec.MinAvailable == nil && away.IntVal >= 1 &&
					away.IntVal < replicas, where, "either no node can be drained, or all pods may go at once")
				p.unless(is(d.Spec.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow), where,
					"a failing pod keeps its node from being drained")
			}
			p.unless(budgets == 1, w.where, "%d PodDisruptionBudgets", budgets)
		}
		return p
	},
		edit{"gateway.yaml", "replicas: 3", "replicas: 1", "1 replicas do not outlive"},
		edit{"gateway.yaml", "maxUnavailable: 0", "maxUnavailable: 1", "takes pods away"},
		edit{"gateway.yaml", "maxSurge: 1", "maxSurge: 0", "takes pods away"},
		edit{"gateway.yaml", "topologyKey: kubernetes.io/hostname", "topologyKey: kubernetes.io/os", "not spread over nodes"},
		edit{"gateway.yaml", "          matchLabelKeys: [pod-template-hash]\n", "", "not spread over nodes"},
		edit{"gateway.yaml", "  maxUnavailable: 1\n", "  maxUnavailable: 0\n", "either no node"},
		edit{"gateway.yaml", "  maxUnavailable: 1\n", "  maxUnavailable: 3\n", "either no node"},
		edit{"gateway.yaml", "  maxUnavailable: 1\n", "  minAvailable: 3\n", "either no node"},
		edit{"gateway.yaml", "AlwaysAllow", "IfHealthyBudget", "keeps its node"},
	)
}

// mention is an object as the commands of a page name it.
var mention = regexp.MustCompile(`\b(deployment|configmap|service)/([a-z0-9.-]+)`)

// TestPageNamesWhatIsThere holds README.md to the manifests: the objects of its commands, the image, and the numbers.
func TestPageNamesWhatIsThere(t *testing.T) {
	page := string(read(t, "kubernetes/README.md"))
	dockerfile := string(read(t, "../Dockerfile"))
	named := map[string]bool{}
	holds(t, func(b *bundle) (p problems) {
		for _, o := range b.objects {
			named[strings.ToLower(o.tree["kind"].(string))+"/"+o.meta.GetName()] = true
		}
		for _, w := range workloads(b, &p) {
			image := w.abate.Image
			_, tag, found := strings.Cut(image, ":")
			p.unless(found && tag != "latest" && w.abate.ImagePullPolicy == "", w.where, "image %s: give it a version", image)
			p.unless(strings.Contains(page, "docker build -t "+image+" "), w.where,
				"README.md builds another image than %s", image)
			p.unless(strings.Contains(dockerfile, "docker build -t "+image+" "), w.where,
				"the Dockerfile builds another image than %s", image)
			p.unless(strings.Contains(page, b.file), w.where, "README.md does not name %s", b.file)
			p.unless(strings.Contains(page, strconv.Itoa(int(port(w.flags.admin)))), w.where,
				"README.md does not name the admin port")
		}
		return p
	},
		edit{"gateway.yaml", "image: registry.example/abate:0.1.0", "image: registry.example/abate:0.2.0",
			"README.md builds another image"},
		edit{"gateway.yaml", "image: registry.example/abate:0.1.0", "image: registry.example/abate:latest",
			"give it a version"},
	)
	mentions := mention.FindAllString(page, -1)
	if len(mentions) == 0 {
		t.Error("README.md has no command for an object of the manifests")
	}
	for _, m := range mentions {
		if !named[m] {
			t.Errorf("README.md speaks of %s, which no manifest has", m)
		}
	}
}

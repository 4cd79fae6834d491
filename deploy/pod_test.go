package deploy_test

import (
	"flag"
	"io"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload is a Deployment with Abate in its pods.
type workload struct {
	where   string
	deploy  *appsv1.Deployment
	pod     *corev1.PodSpec
	abate   *corev1.Container
	sidecar bool
	flags   proxyFlags
}

// proxyFlags are the arguments of "abate proxy" that the manifests use.
type proxyFlags struct {
	policy, listen, admin string
	gateway               bool
	drain                 time.Duration
}

// workloads finds Abate in every Deployment of a file, and complains where there is none.
func workloads(b *bundle, p *problems) []*workload {
	var found []*workload
	for where, d := range all[*appsv1.Deployment](b) {
		w := &workload{where: where, deploy: d, pod: &d.Spec.Template.Spec}
		if i := slices.IndexFunc(w.pod.Containers, isAbate); i >= 0 {
			w.abate = &w.pod.Containers[i]
		} else if i := slices.IndexFunc(w.pod.InitContainers, isAbate); i >= 0 {
			w.abate, w.sidecar = &w.pod.InitContainers[i], true
		} else {
			p.add(where, "no container is called abate")
			continue
		}
		if err := w.flags.parse(w.abate.Args); err != nil {
			p.add(where, "args: %v", err)
			continue
		}
		found = append(found, w)
	}
	p.unless(len(found) == 1, b.file, "%d Deployments with Abate, want 1", len(found))
	return found
}

func isAbate(c corev1.Container) bool { return c.Name == "abate" }

func (f *proxyFlags) parse(args []string) error {
	set := flag.NewFlagSet("proxy", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.policy, "c", "", "")
	set.StringVar(&f.listen, "listen", "", "")
	set.StringVar(&f.admin, "admin", "", "")
	set.BoolVar(&f.gateway, "gateway", false, "")
	set.StringVar(new(string), "log-format", "text", "")
	set.StringVar(new(string), "strangers", "refuse", "")
	set.DurationVar(&f.drain, "drain-timeout", 25*time.Second, "")
	if len(args) == 0 {
		return flag.ErrHelp
	}
	return set.Parse(args[1:])
}

// containers are all containers of the pod, the sidecars among them.
func (w *workload) containers() []corev1.Container {
	return slices.Concat(w.pod.InitContainers, w.pod.Containers)
}

// port is the number of an address like ":15000", 0 without one.
func port(address string) int32 {
	_, digits, _ := net.SplitHostPort(address)
	n, _ := strconv.ParseInt(digits, 10, 32)
	return int32(n)
}

// onLoopback reports whether only the pod itself can reach an address.
func onLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// named finds the number of a port in a list of containers, 0 for none.
func named(target intstr.IntOrString, containers ...corev1.Container) int32 {
	for _, c := range containers {
		for _, p := range c.Ports {
			if target.Type == intstr.String && p.Name == target.StrVal || target.Type == intstr.Int &&
				p.ContainerPort == target.IntVal {
				return p.ContainerPort
			}
		}
	}
	return 0
}

func TestPodsRunWithoutPrivileges(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			pod := w.pod.SecurityContext
			if pod == nil {
				pod = &corev1.PodSecurityContext{}
			}
			p.unless(is(pod.RunAsNonRoot, true), w.where, "pod: runAsNonRoot is not true")
			p.unless(pod.SeccompProfile != nil && pod.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, w.where,
				"pod: seccompProfile is not RuntimeDefault")
			p.unless(is(w.pod.AutomountServiceAccountToken, false), w.where, "pod: automountServiceAccountToken is not false")
			p.unless(!w.pod.HostNetwork && !w.pod.HostPID && !w.pod.HostIPC, w.where, "pod: shares a namespace of the host")
			for _, v := range w.pod.Volumes {
				p.unless(v.HostPath == nil, w.where, "volume %s: is a hostPath", v.Name)
			}
			for _, c := range w.containers() {
				confined(&p, w.where+": container "+c.Name, c)
			}
			own := w.abate.SecurityContext
			if own == nil {
				continue
			}
			p.unless(is(own.ReadOnlyRootFilesystem, true), w.where, "abate: readOnlyRootFilesystem is not true")
			user, group := first(own.RunAsUser, pod.RunAsUser), first(own.RunAsGroup, pod.RunAsGroup)
			p.unless(is(user, 65532) && is(group, 65532), w.where,
				"abate: runAsUser and runAsGroup are not 65532, the image's user")
		}
		return p
	},
		edit{"sidecar.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "pod: runAsNonRoot"},
		edit{"sidecar.yaml", "{type: RuntimeDefault}", "{type: Unconfined}", "pod: seccompProfile"},
		edit{"gateway.yaml", "automountServiceAccountToken: false", "automountServiceAccountToken: true",
			"pod: automountServiceAccountToken"},
		edit{"gateway.yaml", "    spec:\n", "    spec:\n      hostNetwork: true\n", "shares a namespace"},
		edit{"gateway.yaml", "configMap: {name: abate-gateway}", "hostPath: {path: /etc}", "is a hostPath"},
		edit{"gateway.yaml", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true",
			"container abate: allowPrivilegeEscalation"},
		edit{"gateway.yaml", "capabilities: {drop: [ALL]}", "capabilities: {drop: [NET_RAW]}",
			"container abate: does not drop ALL"},
		edit{"gateway.yaml", "capabilities: {drop: [ALL]}", "capabilities: {drop: [ALL], add: [NET_ADMIN]}",
			"container abate: adds capabilities"},
		edit{"gateway.yaml", "capabilities: {drop: [ALL]}", "privileged: true", "container abate: is privileged"},
		edit{"gateway.yaml", "capabilities: {drop: [ALL]}", "runAsNonRoot: false", "container abate: overrides runAsNonRoot"},
		edit{"gateway.yaml", "capabilities: {drop: [ALL]}", "seccompProfile: {type: Unconfined}",
			"container abate: overrides seccompProfile"},
		edit{"sidecar.yaml", "          securityContext:\n            allowPrivilegeEscalation: false\n            " +
			"capabilities: {drop: [ALL]}\n      volumes", "      volumes", "container checkout: has no securityContext"},
		edit{"sidecar.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false",
			"abate: readOnlyRootFilesystem"},
		edit{"sidecar.yaml", "runAsUser: 65532", "runAsUser: 1000", "abate: runAsUser"},
		edit{"gateway.yaml", "        runAsGroup: 65532\n", "", "abate: runAsUser"},
		edit{"gateway.yaml", "- name: abate\n", "- name: proxy\n", "no container is called abate"},
		edit{"gateway.yaml", "--gateway", "--gatewy", "args: flag provided but not defined"},
	)
}

func is[T comparable](p *T, want T) bool { return p != nil && *p == want }

// first is the container's setting, or the pod's where it has none.
func first[T any](own, pods *T) *T {
	if own != nil {
		return own
	}
	return pods
}

// confined holds one container to what the "restricted" Pod Security Standard asks of it.
func confined(p *problems, where string, c corev1.Container) {
	s := c.SecurityContext
	if s == nil {
		p.add(where, "has no securityContext")
		return
	}
	p.unless(is(s.AllowPrivilegeEscalation, false), where, "allowPrivilegeEscalation is not false")
	p.unless(s.Privileged == nil || !*s.Privileged, where, "is privileged")
	p.unless(s.RunAsNonRoot == nil || *s.RunAsNonRoot, where, "overrides runAsNonRoot")
	p.unless(s.SeccompProfile == nil || s.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, where,
		"overrides seccompProfile")
	p.unless(s.Capabilities != nil && slices.Contains(s.Capabilities.Drop, "ALL"), where, "does not drop ALL capabilities")
	p.unless(s.Capabilities == nil || len(s.Capabilities.Add) == 0, where, "adds capabilities")
}

func TestMemoryIsCollectedBeforeTheKernelKillsAndNoCPULimitStopsCalls(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			r := w.abate.Resources
			p.unless(!r.Requests.Cpu().IsZero() && !r.Requests.Memory().IsZero(), w.where,
				"abate: does not request both CPU and memory")
			p.unless(r.Requests.Memory().Cmp(*r.Limits.Memory()) <= 0, w.where, "abate: requests more memory than its limit")
			p.unless(r.Limits.Cpu().IsZero(), w.where, "abate: has a CPU limit")
			p.unless(softLimit(w.abate) > 0, w.where, "abate: GOMEMLIMIT is not taken from resources")
			p.unless(softLimit(w.abate)*10 <= r.Limits.Memory().Value()*9, w.where,
				"abate: GOMEMLIMIT is above 90 %% of the memory limit")
			n, err := strconv.Atoi(env(w.abate, "GOMAXPROCS").Value)
			p.unless(err == nil && n > 0, w.where, "abate: GOMAXPROCS is not a number, so every CPU of the node would be used")
		}
		return p
	},
		edit{"sidecar.yaml", "requests: {cpu: 50m, memory: 96Mi}", "requests: {memory: 96Mi}", "does not request both"},
		edit{"sidecar.yaml", "requests: {cpu: 50m, memory: 96Mi}", "requests: {cpu: 50m}", "does not request both"},
		edit{"sidecar.yaml", "limits: {memory: 128Mi}", "limits: {memory: 64Mi}", "requests more memory than its limit"},
		edit{"sidecar.yaml", "limits: {memory: 128Mi}", "limits: {memory: 100Mi}", "above 90 %"},
		edit{"sidecar.yaml", "            limits: {memory: 128Mi}\n", "", "requests more memory than its limit"},
		edit{"gateway.yaml", "limits: {memory: 320Mi}", "limits: {memory: 320Mi, cpu: 1}", "has a CPU limit"},
		edit{"gateway.yaml", "resource: requests.memory", "resource: limits.memory", "above 90 %"},
		edit{"gateway.yaml", "resource: requests.memory", "resource: requests.cpu", "GOMEMLIMIT is not taken"},
		edit{"gateway.yaml", "resource: requests.memory", "resource: requests.memory, divisor: 1Mi",
			"GOMEMLIMIT is not taken"},
		edit{"gateway.yaml", "GOMEMLIMIT", "GOMEMLIMITS", "GOMEMLIMIT is not taken"},
		edit{"gateway.yaml", `{name: GOMAXPROCS, value: "4"}`, `{name: GOMAXPROCS, value: "4.5"}`,
			"GOMAXPROCS is not a number"},
	)
}

// env finds a variable of a container; one that is not there is empty.
func env(c *corev1.Container, name string) corev1.EnvVar {
	for _, v := range c.Env {
		if v.Name == name {
			return v
		}
	}
	return corev1.EnvVar{}
}

// softLimit is the number of bytes that the kubelet writes into GOMEMLIMIT, 0 if it is none.
func softLimit(c *corev1.Container) int64 {
	from := env(c, "GOMEMLIMIT").ValueFrom
	if from == nil || from.ResourceFieldRef == nil || from.ResourceFieldRef.Divisor.Cmp(resource.MustParse("1")) > 0 {
		return 0
	}
	switch from.ResourceFieldRef.Resource {
	case "requests.memory":
		return c.Resources.Requests.Memory().Value()
	case "limits.memory":
		return c.Resources.Limits.Memory().Value()
	}
	return 0
}

func TestProbesAskTheAdminPortForWhatItHas(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			p.unless(!onLoopback(w.flags.admin), w.where, "abate: the kubelet cannot reach --admin %s", w.flags.admin)
			for _, x := range []struct {
				name, path string
				probe      *corev1.Probe
				patience   int32 // seconds of failing that are forgiven at least
			}{
				{"startupProbe", "/readyz", w.abate.StartupProbe, 20},
				{"readinessProbe", "/readyz", w.abate.ReadinessProbe, 10},
				{"livenessProbe", "/healthz", w.abate.LivenessProbe, 30}, // a busy moment is no reason to be killed
			} {
				if x.probe == nil || x.probe.HTTPGet == nil {
					p.add(w.where, "abate: no %s over HTTP", x.name)
					continue
				}
				get := x.probe.HTTPGet
				p.unless(get.Path == x.path, w.where, "abate: %s asks for %s, not %s", x.name, get.Path, x.path)
				p.unless(named(get.Port, *w.abate) == port(w.flags.admin), w.where, "abate: %s asks port %s, not the admin port",
					x.name, get.Port.String())
				p.unless(get.Host == "" && (get.Scheme == "" || get.Scheme == corev1.URISchemeHTTP), w.where,
					"abate: %s asks another host or scheme", x.name)
				failures := x.probe.FailureThreshold
				if failures == 0 {
					failures = 3
				}
				p.unless(x.probe.PeriodSeconds*failures >= x.patience, w.where, "abate: %s gives up within %d s", x.name,
					x.patience)
				p.unless(x.probe.TimeoutSeconds <= x.probe.PeriodSeconds, w.where,
					"abate: %s may take longer than its period", x.name)
			}
		}
		return p
	},
		edit{"gateway.yaml", `--admin, ":15000"`, `--admin, "127.0.0.1:15000"`, "the kubelet cannot reach"},
		edit{"gateway.yaml", `--admin, ":15000"`, `--admin, ":15001"`, "asks port admin, not the admin port"},
		edit{"gateway.yaml", "path: /healthz", "path: /readyz", "livenessProbe asks for /readyz"},
		edit{"gateway.yaml", "path: /readyz", "path: /ready", "startupProbe asks for /ready,"},
		edit{"gateway.yaml", "{path: /healthz, port: admin}", "{path: /healthz, port: http}", "livenessProbe asks port http"},
		edit{"gateway.yaml", "{path: /healthz, port: admin}", "{path: /healthz, port: 15001}",
			"livenessProbe asks port 15001"},
		edit{"gateway.yaml", "{path: /healthz, port: admin}", "{path: /healthz, port: admin, host: example.com}",
			"another host"},
		edit{"gateway.yaml", "failureThreshold: 30", "failureThreshold: 3", "startupProbe gives up"},
		edit{"gateway.yaml", "periodSeconds: 10", "periodSeconds: 5", "livenessProbe gives up"},
		edit{"gateway.yaml", "timeoutSeconds: 3", "timeoutSeconds: 30", "longer than its period"},
		edit{"sidecar.yaml", "          readinessProbe:\n            httpGet: {path: /readyz, port: admin}\n            " +
			"periodSeconds: 5\n            timeoutSeconds: 2\n", "", "no readinessProbe"},
	)
}

package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// study decodes the manifests of a study, strictly.
func study(t *testing.T) (config *corev1.ConfigMap, claim *corev1.PersistentVolumeClaim, job *batchv1.Job) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, text := range bytes.Split(read(t, "jobs/study.yaml"), []byte("\n---\n")) {
		o, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch o := o.(type) {
		case *corev1.ConfigMap:
			config = o
		case *corev1.PersistentVolumeClaim:
			claim = o
		case *batchv1.Job:
			job = o
		}
	}
	if config == nil || claim == nil || job == nil {
		t.Fatal("the study has not a ConfigMap, a claim and a Job")
	}
	return config, claim, job
}

func TestTheJobIsIndexedAndHasAPodForEveryShard(t *testing.T) {
	config, claim, job := study(t)
	s, pod := &job.Spec, &job.Spec.Template.Spec
	c := &pod.Containers[0]
	if !is(s.CompletionMode, batchv1.IndexedCompletion) || s.Completions == nil || !is(s.Parallelism, *s.Completions) ||
		pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the Job is %+v", s)
	}
	if want := fmt.Sprintf("job/%d", *s.Completions); !slices.Contains(c.Args, want) {
		t.Errorf("the pods run %v, want --shard %s", c.Args, want)
	}
	if s.BackoffLimitPerIndex == nil || s.BackoffLimit != nil {
		t.Error("one bad pod ends the others: backoffLimitPerIndex has to bound the tries of each")
	}
	volumes := map[string]string{}
	for _, v := range pod.Volumes {
		if v.ConfigMap != nil && v.ConfigMap.Name == config.Name {
			volumes[v.Name] = "/study"
		}
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name {
			volumes[v.Name] = "/out"
		}
	}
	for _, m := range c.VolumeMounts {
		if volumes[m.Name] != m.MountPath || m.ReadOnly != (m.MountPath == "/study") {
			t.Errorf("mount %+v is not one of %v", m, volumes)
		}
		delete(volumes, m.Name)
	}
	if len(volumes) > 0 || !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
		t.Errorf("not mounted: %v; the claim has the modes %v", volumes, claim.Spec.AccessModes)
	}
	if p := pod.SecurityContext; p == nil || !is(p.RunAsNonRoot, true) || c.SecurityContext == nil ||
		!is(c.SecurityContext.ReadOnlyRootFilesystem, true) || !is(c.SecurityContext.AllowPrivilegeEscalation, false) {
		t.Error("the pods have privileges that they do not need")
	}
	if text := string(read(t, "jobs/Dockerfile")); !strings.Contains(text, `ENTRYPOINT ["/abate"]`) ||
		!strings.Contains(text, "go build") || !strings.Contains(text, strings.Split(c.Image, ":")[0]) {
		t.Errorf("the image %s is not the one of the Dockerfile", c.Image)
	}
}

// TestTheJobsCommandsMergeToOneReport runs what the pods run, one after the other and smaller, then what the README
// says, beside one process that makes all runs.
func TestTheJobsCommandsMergeToOneReport(t *testing.T) {
	if testing.Short() {
		return // it builds the command and runs it 22 times
	}
	config, _, job := study(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "abate")
	build := exec.Command("go", "build", "-o", binary, "./abate")
	build.Dir, build.Env = "../cmd", append(os.Environ(), "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, folder := range []string{"study", "out"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range config.Data {
		// smaller, but a system that stands: for one that does not, thousands of runs are made to advise
		small := strings.NewReplacer("runs: 4000", "runs: 40", "duration: 2m", "duration: 40s", "at: 20s, for: 30s",
			"at: 5s, for: 5s", "rate: 200", "rate: 50", "workers: 24", "workers: 10").Replace(text)
		if err := os.WriteFile(filepath.Join(dir, "study", name), []byte(small), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("/study", dir+"/study", "/out", dir+"/out")
	run := func(index int, args ...string) {
		for i := range args {
			args[i] = here.Replace(args[i])
		}
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
		said, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code > 2 || code < 0 { // 0 to 2 are verdicts
			t.Fatalf("%v: %v\n%s", args, err, said)
		}
	}
	for index := range int(*job.Spec.Completions) {
		run(index, slices.Clone(job.Spec.Template.Spec.Containers[0].Args)...)
	}
	_, rest, _ := strings.Cut(string(read(t, "jobs/README.md")), "    abate sim merge ")
	merge, _, _ := strings.Cut(rest, "\n")
	run(0, append([]string{"sim", "merge"}, strings.Fields(merge)...)...)
	run(0, "sim", "/study/scenario.yaml", "--html", "/out/one.html")
	if one, all := read(t, dir+"/out/one.html"), read(t, dir+"/out/report.html"); !bytes.Equal(one, all) {
		t.Errorf("the report of %d shards differs from that of one process", *job.Spec.Completions)
	}
}

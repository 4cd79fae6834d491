package importer_test

import (
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

func TestFilesOfABuildNameVersions(t *testing.T) {
	const of = "resilience4j.retry.instances.a.maxAttempts: 2\n"
	const group = "<groupId>io.github.resilience4j</groupId>"
	for _, c := range []struct{ name, text, want string }{
		{"pom.xml", "<dependency>" + group + "<artifactId>resilience4j-core</artifactId><version>1.7.0</version>" +
			"</dependency>\n<dependency>" + group + "\n<artifactId>resilience4j-spring-boot2</artifactId>\n" +
			"<version>1.5.0</version>\n</dependency>", "1.5.0 (a/pom.xml:4:1)"},
		{"pom.xml", "<properties><r4j.version>2.0.2</r4j.version></properties>\n<dependency>" + group +
			"<artifactId>resilience4j-spring-boot3</artifactId><version>${r4j.version}</version></dependency>",
			"2.0.2 (a/pom.xml:2:1)"},
		{"build.gradle", "ext { r4j = \"2.1.0\" }\n" +
			"implementation \"io.github.resilience4j:resilience4j-spring-boot3:${r4j}\"\n", "2.1.0 (a/build.gradle:2:1)"},
		{"build.gradle.kts", "implementation(\"io.github.resilience4j:resilience4j-reactor:2.2.0\")\n",
			"2.2.0 (a/build.gradle.kts:1:1)"},
		{"libs.versions.toml", "[versions]\nresilience4j = \"1.7.1\"\n", "1.7.1 (a/libs.versions.toml:2:1)"},
		{"pom.xml", "<dependency>" + group + "<artifactId>resilience4j-core</artifactId></dependency>",
			"2.3 (assumed: no file says the version of resilience4j)"},
		{"pom.xml", "<properties>\n<spring-cloud.version>2020.0.2</spring-cloud.version></properties>",
			"1.7 (inherited from Spring Cloud 2020.0.2; a/pom.xml:2:1)"},
		{"build.gradle", "ext {\n set('springCloudVersion', \"Hoxton.SR9\")\n}",
			"1.7 (inherited from Spring Cloud Hoxton.SR9; a/build.gradle:2:1)"},
		{"pom.xml", "<spring-cloud.version>2022.0.4</spring-cloud.version>",
			"2.3 (assumed: no file says the version of resilience4j)"},
		{"pom.xml", "<spring-cloud.version>2021.0.1</spring-cloud.version><dependency>" + group +
			"<artifactId>resilience4j-all</artifactId><version>2.0.2</version></dependency>", "2.0.2 (a/pom.xml:1:1)"},
		{"pom.xml", "<dependency><groupId>x</groupId><artifactId>y</artifactId><version>1.0.0</version></dependency>",
			"2.3 (assumed: no file says the version of resilience4j)"},
	} {
		f, _ := importer.Read([]importer.File{{"a/application.yml", []byte(of)}, {"a/" + c.name, []byte(c.text)}},
			source.Assume{})
		if got := f.Policies[0].Layer.Version.String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestTheImageThatADockerfileIsMadeFromNamesAVersion(t *testing.T) {
	const old = "static_resources:\n  clusters:\n  - name: a\n    hosts: []\n"
	for from, assumed := range map[string]bool{"envoyproxy/envoy:v1.14.2": true, "envoyproxy/envoy:v1.31.0": false,
		"envoyproxy/envoy:latest": false} {
		f, _ := importer.Read([]importer.File{{"envoy.yaml", []byte(old)}, {"Dockerfile",
			[]byte("# gateway\nFROM --platform=linux/amd64 " + from + " AS x\nCOPY envoy.yaml /\n")}}, source.Assume{})
		if len(f.Remarks) != 1 || (f.Remarks[0].Assumed != "") != assumed {
			t.Errorf("%s: %+v", from, f.Remarks)
		}
	}
	two := []importer.File{{"envoy.yaml", []byte(old)}, {"Dockerfile", []byte("FROM envoyproxy/envoy:v1.14.2\n")},
		{"compose.yaml", []byte("services: {e: {image: 'envoyproxy/envoy:v1.30.0'}}\n")}}
	if f, _ := importer.Read(two, source.Assume{}); f.Remarks[0].Assumed != "" {
		t.Errorf("of two versions one was taken: %+v", f.Remarks)
	}
}

func TestTheImageOfTheContainerThatHasAFileNamesItsVersion(t *testing.T) {
	const proxy = "http { server { location / { proxy_pass http://api; } } }\n"
	f, _ := importer.Read([]importer.File{
		{"compose.yaml", []byte("services: {edge: {image: 'nginx:1.27.4', volumes: " +
			"[./nginx.conf:/etc/nginx/nginx.conf]}}\n")},
		{"tests/compose.yaml", []byte("services: {edge: {image: 'nginx:1.21.0'}}\n")}, {"nginx.conf", []byte(proxy)},
	}, source.Assume{})
	if v := f.Calls[0].Layers[0].Version.String(); v != "1.27.4 (compose.yaml:1:26)" {
		t.Errorf("%s", v)
	}
}

func TestAVersionHoldsBelowTheFolderOfItsBuild(t *testing.T) {
	pom := func(version string) []byte {
		return []byte("<dependency><groupId>io.github.resilience4j</groupId><artifactId>resilience4j-spring-boot2" +
			"</artifactId><version>" + version + "</version></dependency>")
	}
	const conf = "resilience4j.retry.instances.x.maxAttempts: 2\n"
	const proxy = "http { server { location / { proxy_pass http://api; } } }\n"
	f, _ := importer.Read([]importer.File{
		{"a/pom.xml", pom("1.7.0")}, {"a/src/application.yml", []byte(conf)},
		{"b/pom.xml", pom("2.0.2")}, {"b/src/application.yml", []byte(conf)}, {"c/application.yml", []byte(conf)},
		{"b/sub/pom.xml", pom("2.1.0")}, {"b/sub/application.yml", []byte(conf)},
		{"web/Dockerfile", []byte("FROM nginx:1.25.1\n")}, {"web/etc/web.conf", []byte(proxy)},
		{"other/other.conf", []byte(proxy)},
	}, source.Assume{})
	got := map[string]string{}
	for _, p := range f.Policies {
		got[p.Layer.At.File] = p.Layer.Version.V
	}
	for _, c := range f.Calls {
		for _, l := range c.Layers {
			got[l.At.File] = l.Version.V
		}
	}
	for file, want := range map[string]string{"a/src/application.yml": "1.7.0", "b/src/application.yml": "2.0.2",
		"b/sub/application.yml": "2.1.0", "c/application.yml": "2.3", "web/etc/web.conf": "1.25.1"} {
		if got[file] != want {
			t.Errorf("%s: %q, want %q", file, got[file], want)
		}
	}
	if got["other/other.conf"] == "1.25.1" {
		t.Error("the version of one nginx is taken for that of another")
	}
	one, _ := importer.Read([]importer.File{{"service/pom.xml", pom("1.7.0")}, {"config/prices.yml", []byte(conf)}},
		source.Assume{})
	if v := one.Policies[0].Layer.Version.V; v != "1.7.0" {
		t.Errorf("a configuration apart from its build: %s", v)
	}
}

package importer_test

import (
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// The image of nginx fills in its templates from the environment, which the Dockerfile beside them may set.
func TestADockerfileSetsTheVariablesOfItsFolder(t *testing.T) {
	const conf = "server {\n  location / {\n    proxy_pass http://${ORDERS_HOST}:8080/;\n  }\n}\n"
	for text, want := range map[string]string{
		"FROM nginx\nENV ORDERS_HOST=orders\n":                        "orders",
		"ENV X=1 \\\n    ORDERS_HOST=\"orders\" \\\n    Y='2 3'\n":    "orders",
		"ENV ORDERS_HOST orders\n":                                    "orders",
		"ARG ORDERS_HOST=orders\n":                                    "(orders_host)",
		"ENV ORDERS_HOST=${WHERE}\n":                                  "(orders_host)",
		"ENV ORDERS_HOST=old\nRUN true\nENV ORDERS_HOST=orders\n":     "orders",
		"# ENV ORDERS_HOST=orders\n":                                  "(orders_host)",
		"FROM nginx\nCOPY x y\nENV A=b # no comment\nENV ORDERS_HOST": "(orders_host)",
	} {
		form, _ := importer.Read([]importer.File{{Name: "web/Dockerfile", Data: []byte(text)},
			{Name: "web/conf/default.conf.template", Data: []byte(conf)}}, source.Assume{})
		if len(form.Calls) != 1 || form.Calls[0].To != want {
			t.Errorf("%q: calls %+v, want one to %q", text, form.Calls, want)
		}
	}
	both := []importer.File{{Name: "web/Dockerfile", Data: []byte("ENV ORDERS_HOST=a")},
		{Name: "web/Dockerfile.dev", Data: []byte("ENV ORDERS_HOST=b")},
		{Name: "web/default.conf.template", Data: []byte(conf)}}
	if form, _ := importer.Read(both, source.Assume{}); form.Calls[0].To != "(orders_host)" {
		t.Errorf("of two Dockerfiles one was taken: %q", form.Calls[0].To)
	}
}

func TestTheServiceThatFillsInAConfigurationIsItsOwn(t *testing.T) {
	const conf = "server {\n  location / {\n    proxy_read_timeout ${WAIT};\n    proxy_pass http://${BACKEND};\n  }\n}\n"
	for compose, want := range map[string]string{
		"services: {front: {image: a, environment: {BACKEND: \"app:80\", WAIT: \"${WAIT:-120}\"}}}": "front>app 2m0s",
		"services: {front: {image: a, environment: {BACKEND: \"app:80\"}}}":                         "x>(backend) 0s",
		"services: {front: {image: a, environment: {BACKEND: \"app:80\", WAIT: 1s}}, " +
			"back: {image: a, environment: {BACKEND: \"app:80\", WAIT: 2s}}}": "x>(backend) 0s",
	} {
		form, _ := importer.Read([]importer.File{{Name: "compose.yaml", Data: []byte(compose)},
			{Name: "resources/x.template", Data: []byte(conf)}}, source.Assume{})
		got := ""
		for _, c := range form.Calls {
			if len(c.Layers) > 0 { // else it is that of a variable
				got += c.From + ">" + c.To + " " + c.Layers[0].PerTry.V.String()
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", compose, got, want)
		}
	}
}

func TestWhatLiesInTheFolderThatAServiceIsBuiltFromIsItsOwn(t *testing.T) {
	const conf = "server {\n  listen 80;\n  location / {\n    proxy_pass http://$APP;\n  }\n}\n"
	for compose, want := range map[string]string{
		"services: {front: {build: proxy, environment: [APP=app:80]}}":                                     "front>app",
		"services: {front: {build: {context: ./proxy}, environment: [APP=app:80]}}":                        "front>app",
		"services: {front: {build: .}}":                                                                    "shop>(app)",
		"services: {front: {build: proxy}, back: {build: proxy}}":                                          "shop>(app)",
		"services: {front: {build: proxy}, edge: {image: nginx, volumes: [\"./proxy/nginx:/etc/nginx\"]}}": "edge>(app)",
	} {
		form, _ := importer.Read([]importer.File{{Name: "shop/compose.yaml", Data: []byte(compose)},
			{Name: "shop/proxy/nginx/nginx.conf", Data: []byte(conf)}}, source.Assume{})
		got := ""
		for _, c := range form.Calls {
			if len(c.Layers) > 0 {
				got += c.From + ">" + c.To
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", compose, got, want)
		}
	}
}

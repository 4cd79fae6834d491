package awssdk

import (
	"cmp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
)

// clients returns the programs of a document whose environment has one of the variables, and those whose files have,
// by path.
func clients(d *source.Document, files map[string]client) []client {
	var f finder
	root := d.Root
	f.kubernetes(root)
	if !root.Get("kind").Exists() {
		for _, p := range root.Get("services").Pairs() { // compose
			all := []client{said(p.Value.Get("environment"))}
			for _, name := range envFiles(d, p.Value) {
				all = append(all, files[name])
			}
			f.add(p.Key, all...)
		}
		f.task(root, "")
		f.cloudFormation(root)
		f.serverless(root)
		f.terraform(root)
	}
	return f.all
}

// namesFiles reports whether a document is a compose file whose services have files of variables.
func namesFiles(root source.Node) bool {
	return slices.ContainsFunc(root.Get("services").Pairs(), func(p source.Pair) bool {
		return p.Value.Get("env_file").Exists()
	})
}

// finder collects programs.
type finder struct{ all []client }

// add adds a program that has one of the variables. The environments are the nearest first: what it does not say, the
// next may.
func (f *finder) add(service string, environments ...client) {
	c := client{service: service}
	for _, env := range environments {
		c.fill(env)
	}
	if service != "" && (c.attempts.Text != "" || c.mode.Text != "") {
		f.all = append(f.all, c)
	}
}

// fill takes what is not said from another.
func (c *client) fill(from client) {
	if c.attempts.Text == "" {
		c.attempts = from.attempts
	}
	if c.mode.Text == "" {
		c.mode = from.mode
	}
}

// said returns what an environment says: a mapping, or a list of "name=value" or of names with values.
func said(env source.Node) client {
	var one client
	for _, p := range env.Pairs() {
		one.set(p.Key, source.Part{Text: p.Value.Text(), At: p.Value.At()})
	}
	for _, e := range env.Items() {
		if name, value, ok := strings.Cut(e.Text(), "="); ok {
			one.set(name, source.Part{Text: value, At: e.At()})
		}
		if value := e.Get("value|Value"); value.Exists() {
			one.set(e.Get("name|Name").Text(), source.Part{Text: value.Text(), At: value.At()})
		}
	}
	return one
}

func (f *finder) kubernetes(root source.Node) {
	meta := root.Get("metadata")
	for _, spec := range []source.Node{root.Get("spec"), root.Get("spec", "template", "spec"),
		root.Get("spec", "jobTemplate", "spec", "template", "spec")} {
		for _, container := range spec.Get("containers").Items() {
			f.add(source.Qualified(meta.Get("name").Text(), meta.Get("namespace").Text()), said(container.Get("env")))
		}
	}
}

// task reads a task definition of ECS; name is what it is called elsewhere.
func (f *finder) task(n source.Node, name string) {
	family := n.Get("family|Family").Text()
	if source.Template(family) != "" {
		family = ""
	}
	containers, _ := source.Inside(n.Get("containerDefinitions|ContainerDefinitions|container_definitions"))
	for _, c := range containers.Items() {
		f.add(cmp.Or(family, name, c.Get("name|Name").Text()), said(c.Get("environment|Environment")))
	}
}

// cloudFormation reads functions and tasks of a template of CloudFormation, which may be one of SAM.
func (f *finder) cloudFormation(root source.Node) {
	all := root.Get("Globals", "Function", "Environment", "Variables")
	for _, p := range root.Get("Resources").Pairs() {
		properties := p.Value.Get("Properties")
		switch p.Value.Get("Type").Text() {
		case "AWS::Serverless::Function":
			f.add(p.Key, said(properties.Get("Environment", "Variables")), said(all))
		case "AWS::Lambda::Function":
			f.add(p.Key, said(properties.Get("Environment", "Variables")))
		case "AWS::ECS::TaskDefinition":
			f.task(properties, p.Key)
		}
	}
}

// serverless reads functions of a serverless.yml.
func (f *finder) serverless(root source.Node) {
	provider := root.Get("provider")
	if !provider.IsMap() {
		return
	}
	for _, p := range root.Get("functions").Pairs() {
		f.add(p.Key, said(p.Value.Get("environment")), said(provider.Get("environment")))
	}
}

// terraform reads functions and tasks among the resources of Terraform.
func (f *finder) terraform(root source.Node) {
	for _, block := range root.Get("resource").List() {
		for _, p := range block.Get("aws_lambda_function").Pairs() {
			f.add(p.Key, said(p.Value.Get("environment", "variables")))
		}
		for _, p := range block.Get("aws_ecs_task_definition").Pairs() {
			f.task(p.Value, p.Key)
		}
	}
}

func (c *client) set(name string, value source.Part) {
	switch name {
	case attemptsVariable:
		c.attempts = value
	case modeVariable:
		c.mode = value
	}
}

package awssdk_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/awssdk"
	"github.com/abate-go/abate/importer/source"
)

func TestTheEnvironmentIsFoundWhereverAProgramIsDescribed(t *testing.T) {
	for text, want := range map[string]string{
		"services:\n  web: {image: x, environment: {AWS_MAX_ATTEMPTS: 4}}\n":     "web: 4 (f.yaml:2:51)",
		"services:\n  web:\n    image: x\n    environment: [AWS_MAX_ATTEMPTS=4]": "web: 4 (f.yaml:4:19)",
		`{"family": "shop", "containerDefinitions": [{"name": "web", "environment": [{"name": "AWS_MAX_ATTEMPTS",` +
			` "value": "6"}]}, {"name": "log"}]}`: "shop: 6 (f.yaml:1:115)",
		"Resources:\n  Task:\n    Type: AWS::ECS::TaskDefinition\n    Properties:\n      ContainerDefinitions:\n" +
			"      - Name: web\n        Environment: [{Name: AWS_MAX_ATTEMPTS, Value: '7'}]\n": "Task: 7 (f.yaml:7:55)",
		"Globals:\n  Function: {Environment: {Variables: {AWS_MAX_ATTEMPTS: 8, AWS_RETRY_MODE: adaptive}}}\nResources:\n" +
			"  A: {Type: 'AWS::Serverless::Function', Properties: {Environment: {Variables: {AWS_MAX_ATTEMPTS: 2}}}}\n" +
			"  B: {Type: 'AWS::Serverless::Function'}\n  C: {Type: 'AWS::Lambda::Function'}\n": "A: 2 (f.yaml:4:99), " +
			"B: 8 (f.yaml:2:58)",
		"service: s\nprovider: {name: aws, environment: {AWS_MAX_ATTEMPTS: 9}}\nfunctions:\n  a: {handler: x}\n" +
			"  b: {handler: y, environment: {AWS_MAX_ATTEMPTS: 1}}\n": "a: 9 (f.yaml:2:55), b: 1 (f.yaml:5:51)",
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: night}\nspec: {jobTemplate: {spec: {template: {spec: " +
			"{containers: [{env: [{name: AWS_MAX_ATTEMPTS, value: '3'}]}]}}}}}\n": "night: 3 (f.yaml:4:99)",
	} {
		var got []string
		for _, c := range read(t, "f.yaml", text).Calls {
			got = append(got, c.From+": "+c.Layers[0].Repeats[0].Tries.String())
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", text, s, want)
		}
	}
}

func TestTheEnvironmentIsFoundInTerraform(t *testing.T) {
	d, remarks := source.HCL(source.Document{File: "main.tf", Data: []byte(`resource "aws_lambda_function" "pay" {
  function_name = "pay-${var.stage}"
  environment {
    variables = {
      AWS_MAX_ATTEMPTS = "5"
    }
  }
}
resource "aws_ecs_task_definition" "shop" {
  family                = "shop"
  container_definitions = jsonencode([
    { name = "web", environment = [{ name = "AWS_RETRY_MODE", value = "standard" }] }
  ])
}
resource "aws_s3_bucket" "b" {}
`)})
	if len(remarks) > 0 || !awssdk.Recognise(d) {
		t.Fatalf("%v", remarks)
	}
	f := awssdk.Read([]source.Document{d}, source.Assume{})
	if len(f.Calls) != 2 || f.Calls[0].From != "pay" || f.Calls[1].From != "shop" ||
		f.Calls[0].Layers[0].Repeats[0].Tries.String() != "5 (main.tf:5:26)" {
		t.Errorf("%s", f.YAML())
	}
}

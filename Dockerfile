# The binary for sidecars and gateways, cmd/abate-proxy, and nothing else; in the image it is called abate. From the root of the repository, with BuildKit (the default of docker build):
#
#   docker build -t registry.example/abate:0.1.0 .
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example/abate:0.1.0 --push .
#
# The compiler runs on the builder's own architecture and compiles for the other. Its Go is the release that go.mod
# names, with that release's newest fixes.
FROM --platform=$BUILDPLATFORM golang:1.26-alpine AS build
ENV GOMODCACHE=/cache/modules GOCACHE=/cache/build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH
# A workspace of the modules that the binary is made of, so that a release, too, is built from these files.
RUN --mount=type=cache,target=/cache \
    go work init . ./cmd ./proxy ./adapter/abatebolt ./adapter/abatekafka ./adapter/abatekafka/embedded \
      ./adapter/abateredis && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w" -o /out/abate ./cmd/abate-proxy
RUN echo "abate:x:65532:65532:abate:/:/sbin/nologin" >/out/passwd

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/passwd /etc/passwd
COPY --from=build /out/abate /abate
COPY LICENSE /LICENSE
USER 65532:65532
ENTRYPOINT ["/abate"]

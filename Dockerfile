# The abate binary and nothing else. From the root of the repository, with BuildKit (the default of docker build):
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
# GOWORK=off: cmd/abate's own go.mod decides, as for everybody who installs it, and other modules need not be here.
RUN --mount=type=cache,target=/cache \
    GOWORK=off CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -C cmd/abate -trimpath -ldflags "-s -w" -o /out/abate .
RUN echo "abate:x:65532:65532:abate:/:/sbin/nologin" >/out/passwd

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/passwd /etc/passwd
COPY --from=build /out/abate /abate
COPY LICENSE /LICENSE
USER 65532:65532
ENTRYPOINT ["/abate"]

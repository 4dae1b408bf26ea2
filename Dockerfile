# The image holds the three programs and nothing else: no shell, no package manager, no Go.
#   docker build -t causeway . && docker run --rm -p 8080:8080 causeway
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG REVISION=unknown
RUN make build VERSION="$VERSION" REVISION="$REVISION" && mkdir /state

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="causeway" \
      org.opencontainers.image.description="Copies topics from one Kafka cluster to another, each record once" \
      org.opencontainers.image.source="https://github.com/causeway-mirror/causeway" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /src/bin/causeway /src/bin/causeway-worker /src/bin/causeway-controller /usr/local/bin/
# Positions of a mirror in one process, ./causeway-state, are below: mount a volume here, or they go with the container.
COPY --from=build --chown=65532:65532 /state /var/lib/causeway
WORKDIR /var/lib/causeway
USER 65532:65532
EXPOSE 8080
# Alive, not ready: a mirror that waits for Kafka must not be restarted for it. Another port, or TLS: CAUSEWAY_API.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/usr/local/bin/causeway", "status"]
ENTRYPOINT ["/usr/local/bin/causeway"]
CMD ["demo", "--listen", ":8080"]

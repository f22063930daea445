# Builds rejoin from this source and puts nothing but the program into the image:
#
#   docker build -t rejoin .
#   docker run -p 127.0.0.1:8787:8787 -v rejoin:/var/lib/rejoin -v ./tokens:/etc/rejoin/tokens:ro \
#       --ulimit nofile=32768 --stop-timeout 30 rejoin
#
# The program listens on all addresses of the container, so it asks for tokens: docs/operating.md says what is in their
# file. Publish the port where only your proxy reaches it.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY clients clients
COPY benches benches
RUN cargo build --release --locked --bin rejoin

FROM debian:bookworm-slim
# The roots of certificates, for agents over https.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/rejoin --create-home rejoin \
    && chmod 700 /var/lib/rejoin
COPY --from=build /src/target/release/rejoin /usr/local/bin/rejoin
USER rejoin
WORKDIR /var/lib/rejoin
VOLUME /var/lib/rejoin
EXPOSE 8787
# SIGTERM closes and saves what is under way.
STOPSIGNAL SIGTERM
ENTRYPOINT ["rejoin"]
CMD ["serve", "--listen", "0.0.0.0:8787", "--token-file", "/etc/rejoin/tokens", "--db", "/var/lib/rejoin/rejoin.db", "--log-format", "json"]

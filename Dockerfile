# The image that the chart installs. `make build` makes the two programs, which need
# nothing else: no shell, no library.
FROM scratch
COPY bin/manager bin/kubectl-fence /
USER 65532:65532
ENTRYPOINT ["/manager"]

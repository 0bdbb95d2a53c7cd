# The Atlas with its weights, for strangers: docker build -t attention-atlas . && docker run -p 8501:8501 attention-atlas
# For a GPU as it is. For CPUs alone, a tenth of the size: --build-arg TORCH_INDEX=ADDRESS, see docs/deploy.md.
# The base is pinned by its digest, of Python 3.11.16 in September 2026.
FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS packages
ARG TORCH_INDEX=""
WORKDIR /packages
COPY requirements.txt requirements-serve.txt ./
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r requirements-serve.txt

FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
RUN apt-get update && apt-get install -y --no-install-recommends haproxy=2.6.* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home atlas
COPY --from=packages /venv /venv
WORKDIR /app
COPY app.py hosted.py LICENSE README.md ./
COPY .streamlit .streamlit
COPY assets assets
COPY serving serving
COPY pages pages
COPY ui ui
COPY viz_core viz_core
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 STREAMLIT_SERVER_PORT=8501
USER 1000
EXPOSE 8501
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['STREAMLIT_SERVER_PORT'] + '/healthz', timeout=4)"]
# The server ends readiness at the first SIGTERM and stops when everyone is served.
STOPSIGNAL SIGTERM
CMD ["python", "hosted.py"]

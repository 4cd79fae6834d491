// Loaded by "abate run" into every Node process of the program, before its own code. Node's fetch, and before version 24
// its http module too, look at no http_proxy. Calls to the services of the policy file go to the proxy as requests to
// an HTTP proxy do; everything else is left alone.
'use strict';
(() => {
  const proxy = process.env.ABATE_RUN_PROXY;
  const hosts = new Set((process.env.ABATE_RUN_HOSTS || '').split(',').filter(Boolean));
  const [major, minor] = process.versions.node.split('.').map(Number);
  const knows = major >= 24 || (major === 22 && minor >= 21);
  if (!proxy || hosts.size === 0 || (knows && process.env.NODE_USE_ENV_PROXY === '1')) return; // Node does it itself
  const at = proxy.lastIndexOf(':');
  const to = { host: proxy.slice(0, at), port: Number(proxy.slice(at + 1)) };
  const authority = (protocol, host, port) =>
    `${String(host).toLowerCase()}:${port || (protocol === 'https:' ? 443 : 80)}`;
  const isService = (protocol, host, port) => hosts.has(authority(protocol, host, port));

  const http = require('node:http');
  const https = require('node:https');
  const request = http.request;

  // divert makes the options of a request through the proxy, or returns undefined.
  const divert = (protocol, args) => {
    let url;
    let options = {};
    let i = 0;
    if (typeof args[0] === 'string') { url = new URL(args[i++]); } else if (args[0] instanceof URL) { url = args[i++]; }
    if (args[i] !== null && typeof args[i] === 'object') options = args[i++];
    if (options.socketPath || options.createConnection) return undefined;
    const scheme = options.protocol || (url && url.protocol) || protocol;
    let host = options.hostname || options.host || (url && url.hostname) || 'localhost';
    if (host.startsWith('[')) host = host.slice(1, -1);
    const shown = host.includes(':') ? `[${host}]` : host;
    const port = options.port || (url && url.port) || options.defaultPort;
    if (!isService(scheme, shown, port)) return undefined;
    const path = options.path || (url && url.pathname + url.search) || '/';
    const plain = !port || Number(port) === (scheme === 'https:' ? 443 : 80);
    const name = plain ? shown : `${shown}:${port}`;
    const diverted = { ...options, ...to, protocol: 'http:', path: `${scheme}//${name}${path}`, agent: agent(options) };
    delete diverted.hostname;
    delete diverted.defaultPort;
    if (url && (url.username || url.password) && !diverted.auth) {
      diverted.auth = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    }
    if (Array.isArray(options.headers)) return [diverted, args[i]];
    diverted.headers = { ...options.headers };
    if (!Object.keys(diverted.headers).some((h) => h.toLowerCase() === 'host')) diverted.headers.Host = name;
    return [diverted, args[i]];
  };

  // An agent for TLS, or one with a connection of its own, cannot speak to the proxy; agent: false means a connection
  // for each request, and keeps that.
  const agent = (options) => (options.agent === false ? false : http.globalAgent);

  const patch = (module, protocol) => {
    const original = module.request;
    module.request = function (...args) {
      let diverted;
      try { diverted = divert(protocol, args); } catch { /* the original says what is wrong */ }
      if (!diverted) return original.apply(this, args);
      return request.apply(http, diverted[1] === undefined ? [diverted[0]] : diverted);
    };
    module.get = function (...args) {
      const req = module.request(...args);
      req.end();
      return req;
    };
  };
  patch(http, 'http:');
  patch(https, 'https:');
  require('node:module').syncBuiltinESMExports();

  if (typeof globalThis.fetch !== 'function') return;
  const key = Symbol.for('undici.globalDispatcher.1');
  const fetch = globalThis.fetch;
  // through is a dispatcher of undici, which fetch is made of: it sends requests for services to the proxy.
  const through = {
    dispatch(options, handler) {
      const origin = new URL(options.origin);
      if (!isService(origin.protocol, origin.hostname, origin.port)) return globalThis[key].dispatch(options, handler);
      const headers = Array.isArray(options.headers) ? [...options.headers] : { ...options.headers };
      if (Array.isArray(headers)) {
        if (!headers.some((h, n) => n % 2 === 0 && String(h).toLowerCase() === 'host')) headers.push('host', origin.host);
      } else if (!Object.keys(headers).some((h) => h.toLowerCase() === 'host')) {
        headers.host = origin.host;
      }
      return globalThis[key].dispatch({
        ...options, headers, origin: `http://${proxy}`, path: `${origin.protocol}//${origin.host}${options.path}`,
      }, handler);
    },
  };
  let loaded = false;
  globalThis.fetch = function (input, init) {
    if (init && init.dispatcher) return fetch(input, init); // the program's own: it knows where it goes
    if (!loaded) {
      loaded = true;
      fetch('data:,').catch(() => {}); // has undici loaded, and its dispatcher made
    }
    return fetch(input, { ...init, dispatcher: through });
  };
})();
